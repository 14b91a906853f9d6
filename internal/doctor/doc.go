// Package doctor checks what sluice needs and fixes what a person says yes to: of the machine git,
// the state folder, the clock, the limits on watched folders and a sandbox; of a repo its specs,
// agents, logins, journal and notices. A command hands in the repo's settings, and checks itself
// what it alone knows, such as who serves the repo.
//
// Nothing is changed without a yes, and what cannot be fixed here has its advice.
//
// Reading order: check.go, machine.go, os_linux.go, repo.go, agents.go, keys.go, notify.go, page.go, foreign.go.
package doctor
