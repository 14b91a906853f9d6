// Package checkouts keeps checkouts of commits for judges: the commands of criteria and gates,
// reviewers, hooks.
//
// # Promises
//
// A checkout from At has the files of the commit and nothing else, as git writes them without
// filters. Anything else is removed, even if ignored, hidden, unreadable or too deep to be named. A
// checkout has one user at a time. A user's changes are found before the next one gets it, from
// what no program can reset: each file's inode number and change time. A changed file is written
// again as a new file.
//
// Nothing that a user could have written is trusted: the record of a checkout is beside it, in a
// folder that no launch sees. Records from before the machine booted, or before the disk was
// mounted, are not trusted either.
//
// A few checkouts are kept, because updating a similar one is cheap. More concurrent users get more
// checkouts, which are removed after use.
package checkouts
