//! What several outputs at once, which share their basis functions, (M61), cannot have.

use crate::error::{Result, require};
use crate::rvm::Rvm;
use crate::rvm::Variational;
use crate::rvm::search::scheme::Hyperpriors;

impl Rvm {
    /// Refuses what is not known of targets of several outputs.
    pub(crate) fn check_several_outputs(&self, outputs: usize) -> Result<()> {
        let scheme = self.inference.name();
        let expected = format!("search, sequential, mackay or em for {outputs} outputs at once");
        require(scheme != Variational::NAME, || "inference".into(), scheme, &expected)?;
        let Hyperpriors { a, b, .. } = self.inference.as_dyn().hyperpriors();
        for (letter, value) in [("a", a), ("b", b)] {
            let expected = format!("0: the precisions of {outputs} outputs are relative to those of their noise");
            require(value == 0.0, || format!("inference.{scheme}.hyperpriors.{letter}"), value, &expected)?;
        }
        let expected = format!("false: sums are kept for one output, not for {outputs}");
        require(!self.keep_statistics, || "keep_statistics".into(), true, &expected)
    }
}
