package main

import (
	"os"
	"strconv"
	"strings"
)

// What the kernel should grant; the distributions' defaults are above it.
const (
	inotifyInstances = 64
	inotifyWatches   = 8192
)

// watchLimits looks at how many folders the kernel lets a user watch.
func watchLimits() []check {
	for _, l := range []struct {
		name  string
		least int
	}{{"max_user_instances", inotifyInstances}, {"max_user_watches", inotifyWatches}} {
		raw, err := os.ReadFile("/proc/sys/fs/inotify/" + l.name)
		if err != nil {
			return []check{warned("watching", "", "inotify's limits cannot be read: folders are polled if it cannot be had")}
		}
		if n, err := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil && n < l.least {
			return []check{warned("watching", "sysctl fs.inotify."+l.name+"="+strconv.Itoa(l.least), "fs.inotify.%s is %d: beyond it folders are polled every few seconds", l.name, n)}
		}
	}
	return []check{fine("watching", "inotify")}
}

// desktop says whether there is a session bus that notices can be shown through.
func (a *app) desktop() bool {
	if a.getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	_, err := os.Stat("/run/user/" + strconv.Itoa(os.Getuid()) + "/bus")
	return err == nil
}
