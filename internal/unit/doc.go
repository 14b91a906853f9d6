// Package unit puts the daemon into the care of the machine's service manager and tells how it stands there: systemd on
// Linux, launchd on macOS. Elsewhere it refuses: no init script is ever written.
//
// kardianos/service finds out which manager there is and gives it its orders; the files are ours (package deploy), and so is
// what is told of a service's state, for its own would call a crash loop running.
//
// Ended is the other half of a unit with KillMode=process: agents outlive the daemon at a crash and at a restart, and end
// with it when somebody wants the service stopped.
package unit
