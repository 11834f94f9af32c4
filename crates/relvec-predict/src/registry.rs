//! Macros for closed enums with names: over a private trait with dynamic access, or of names alone.

/// Defines an enum whose variants are structs of the same name, tagged in JSON by `name`.
///
/// A new member needs one file with the struct and its trait implementation, and one line in the invocation.
///
/// With a trait, `as_dyn` returns a member as an object of that trait.
#[doc(hidden)]
#[macro_export]
macro_rules! registry {
    ($(#[$meta:meta])* pub enum $Enum:ident: $Trait:ident, $what:literal {
        $($(#[$doc:meta])* $Variant:ident = $name:literal),+ $(,)?
    }) => {
        $crate::registry! {
            $(#[$meta])*
            pub enum $Enum, $what { $($(#[$doc])* $Variant = $name),+ }
        }

        impl $Enum {
            #[allow(dead_code)]
            pub(crate) fn as_dyn(&self) -> &dyn $Trait {
                match self { $(Self::$Variant(member) => member),+ }
            }

            #[allow(dead_code)]
            pub(crate) fn as_dyn_mut(&mut self) -> &mut dyn $Trait {
                match self { $(Self::$Variant(member) => member),+ }
            }
        }
    };
    ($(#[$meta:meta])* pub enum $Enum:ident, $what:literal {
        $($(#[$doc:meta])* $Variant:ident = $name:literal),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, serde::Serialize, serde::Deserialize)]
        pub enum $Enum {
            $($(#[$doc])* #[serde(rename = $name)] $Variant($Variant)),+
        }

        impl $Enum {
            /// The names of all members, as used in settings and model files.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Returns the name of this member.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$Variant(_) => $name),+ }
            }

            /// Returns the member with this name and its default parameters.
            ///
            /// # Errors
            /// [`Error::UnknownName`](crate::Error::UnknownName) lists the known names.
            pub fn from_name(name: &str) -> $crate::Result<Self> {
                match name {
                    $($name => Ok(Self::$Variant(Default::default())),)+
                    _ => Err($crate::Error::UnknownName {
                        what: $what,
                        found: name.into(),
                        known: Self::NAMES,
                    }),
                }
            }
        }

        $(impl From<$Variant> for $Enum {
            fn from(member: $Variant) -> Self { Self::$Variant(member) }
        })+
    };
}
pub use registry;

/// Defines an enum of rules without parameters, which JSON represents by their names.
#[doc(hidden)]
#[macro_export]
macro_rules! rules {
    ($(#[$meta:meta])* pub enum $Enum:ident, $what:literal {
        $($(#[$doc:meta])* $Variant:ident = $name:literal),+ $(,)?
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub enum $Enum {
            $($(#[$doc])* #[serde(rename = $name)] $Variant),+
        }

        impl $Enum {
            /// The names of all rules, as used in settings and model files.
            pub const NAMES: &'static [&'static str] = &[$($name),+];

            /// Returns the name of this rule.
            pub fn name(self) -> &'static str {
                match self { $(Self::$Variant => $name),+ }
            }

            /// Returns the rule with this name.
            ///
            /// # Errors
            /// [`Error::UnknownName`](crate::Error::UnknownName) lists the known names.
            pub fn from_name(name: &str) -> $crate::Result<Self> {
                match name {
                    $($name => Ok(Self::$Variant),)+
                    _ => Err($crate::Error::UnknownName { what: $what, found: name.into(), known: Self::NAMES }),
                }
            }
        }
    };
}
pub use rules;
