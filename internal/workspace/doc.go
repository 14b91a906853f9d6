// Package workspace finds what a command is about: the repo, its state folder outside of it, the folder of all state folders
// and the person's settings file. Find and Bare look from a folder upwards, All lists each repo of this machine that is known.
//
// View shows how the runs of a repo stand, by the process that serves it or by its journal; Serving is that process. RunNamed,
// RunWith and RunMeant find the run that is meant. Nothing is made by looking.
//
// Reading order: find.go, repos.go, view.go, exposure.go, runs.go.
package workspace
