// Package host is what the live screens of package tui are run on: Repos for all repos that are known, Run for one run. It reads
// from whoever serves a repo, or from its journal, shows what `sluice show` shows, and has what a person decides taken in.
package host
