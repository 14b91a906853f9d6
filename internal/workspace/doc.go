// Package workspace finds what a command is about: the repo, its state folder outside of it, the folder of all state folders
// and the person's settings file. Find and Bare look from a folder upwards, All lists each repo of this machine that is known.
// Nothing is made by looking.
//
// Reading order: find.go, repos.go.
package workspace
