// Package host connects the live screens of package tui to repos: Repos serves all known repos, Run one
// run. Both read from the process that serves a repo, or from its journal, and submit a person's decisions.
package host
