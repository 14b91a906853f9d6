// Package workspace finds what a command is about: the repo, its state folder outside the repo, the
// folder of all state folders and the person's settings file. Find and Bare search from a folder
// upwards, All lists the known repos of this machine.
//
// View reports the state of a repo's runs, from the process that serves it or from its journal;
// Serving returns that process. RunNamed, RunWith and RunMeant find the meant run. Reading never
// creates anything.
//
// Reading order: find.go, repos.go, view.go, exposure.go, runs.go.
package workspace
