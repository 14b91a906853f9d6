// Package git calls the git program without running anything that the repo defines.
//
// Whoever works in a repo can write its .git/config, hooks, attributes and objects. Some of these
// name programs that git starts: core.fsmonitor when it looks at the index, hooks for a new
// worktree or ref, filters for a checkout or a comparison, gpg.program to show a signature,
// core.sshCommand to fetch an object missing from a partial clone. The daemon reads repos all day,
// with rights that the author of that config may not have. So:
//
//   - Only the subcommands listed in the function allowed are called, by the program's absolute
//     path, with an environment built from nothing and the known switches off (see run.go).
//   - Work on objects or files (commits, differences, checkouts, salvage) does not read the repo's
//     configuration at all. It runs in a shadow: a git folder of our own, with our own
//     configuration, that borrows the repo's objects (see shadow.go). No filter, driver or promisor
//     can be defined there.
//   - Calls that need the repo itself (refs, worktrees, one configuration value) name its folders
//     explicitly, so a planted .git file or commondir has no effect.
//   - ls-remote, which uses the network, runs outside the repo.
//
// Read place (repo.go) first: the folders, and calls into them. Refs and HEADs are in refs, commits
// and trees in objects, which works in shadowGit. Repo joins them for what needs both: a worktree.
//
// Every call has a time limit and a limit on its output. Paths have git's form: relative to the
// worktree, with slashes, as raw bytes.
package git
