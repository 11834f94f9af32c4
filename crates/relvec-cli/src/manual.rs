//! `relvec completions` and `relvec man`: descriptions of the arguments for shells and `man`.

use std::fs;

use anyhow::{Context, Result};

use crate::args::{self, CompletionsArgs, ManArgs};
use crate::output;

pub(crate) fn completions(args: &CompletionsArgs) -> Result<()> {
    let mut script = vec![];
    clap_complete::generate(args.shell, &mut args::command(), "relvec", &mut script);
    output::print(&String::from_utf8(script)?)
}

/// Writes a page for the program and one for each of its commands.
pub(crate) fn pages(args: &ManArgs) -> Result<()> {
    let folder = &args.folder;
    fs::create_dir_all(folder).with_context(|| format!("cannot create the folder `{}`", folder.display()))?;
    let mut command = args::command().disable_help_subcommand(true);
    // `build` sets the full names of the commands and adds the global options.
    command.build();
    let all: Vec<clap::Command> = std::iter::once(&command).chain(command.get_subcommands()).cloned().collect();
    for (i, one) in all.into_iter().enumerate() {
        let name = if i == 0 { "relvec".to_string() } else { format!("relvec-{}", one.get_name()) };
        let mut page = vec![];
        clap_mangen::Man::new(one.display_name(&name)).title(&name).render(&mut page)?;
        let path = folder.join(format!("{name}.1"));
        output::write(&path, &page)?;
        output::print(&format!("Saved {}\n", path.display()))?;
    }
    Ok(())
}
