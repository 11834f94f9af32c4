//! The macros of closed enums: over a private trait, with names and dynamic access; or of names alone.

/// Makes an enum whose variants are structs of the same name, tagged in JSON by `name`.
///
/// A new member is one file with the struct and its trait implementation, and one line here.
///
/// With a trait, `as_dyn` gives what a member can do.
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

            /// The name of this member.
            pub fn name(&self) -> &'static str {
                match self { $(Self::$Variant(_) => $name),+ }
            }

            /// The member of that name with its default parameters.
            ///
            /// # Errors
            /// [`Error::UnknownName`](crate::Error::UnknownName), which lists the names.
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

/// Makes an enum of rules without parameters, in JSON their names.
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

            /// The name of this rule.
            pub fn name(self) -> &'static str {
                match self { $(Self::$Variant => $name),+ }
            }

            /// The rule of that name.
            ///
            /// # Errors
            /// [`Error::UnknownName`](crate::Error::UnknownName), which lists the names.
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
