// Package doctor checks what sluice needs of a machine and fixes what a person says yes to: git, the state folder, the
// clock, the limits on watched folders, a sandbox's program. A check is made here or by the command, which knows the repo and
// its settings; all are printed and fixed here.
//
// Nothing is changed without a yes, and what cannot be fixed here has its advice.
//
// Reading order: check.go, machine.go, os_linux.go.
package doctor
