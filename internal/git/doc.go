// Package git calls the git program in a way that runs nothing of the repo's.
//
// Whoever works in a repo can write its .git/config, its hooks, its attributes and its objects, and
// some of these name programs that git starts: core.fsmonitor on a look at the index, hooks on a new
// worktree or ref, filters on a checkout or a comparison, gpg.program where a signature is shown,
// core.sshCommand where an object of a partial clone is missing. The daemon looks at repos all day, with
// rights the author of that config may not have. So:
//
//   - Only the subcommands that the function allowed names are ever called, by the absolute path of the
//     program, with an environment made from nothing and the known switches off (see run.go).
//   - What touches objects or files (commits, differences, checkouts, salvage) does not read the repo's
//     configuration at all: it runs in a shadow, a git folder of our own with a configuration of our own,
//     that borrows the repo's objects (see shadow.go). No filter, driver or promisor can be defined there.
//   - What needs the repo itself (refs, worktrees, one configuration value) names its folders outright, so
//     that a planted .git file or commondir leads nowhere.
//   - The one command that reaches out, ls-remote, runs outside the repo.
//
// Every call has a time limit and a limit on its output. Paths come and go as git has them: relative to
// the worktree, with slashes, as raw bytes.
package git
