package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"sluice/internal/console"
)

// What the kernel should grant; the distributions' defaults are above it.
const (
	inotifyInstances = 64
	inotifyWatches   = 8192
)

// Watching looks at how many folders the kernel lets a user watch.
func Watching() []Check {
	for _, l := range []struct {
		name  string
		least int
	}{{"max_user_instances", inotifyInstances}, {"max_user_watches", inotifyWatches}} {
		raw, err := os.ReadFile("/proc/sys/fs/inotify/" + l.name)
		if err != nil {
			return []Check{Warned("watching", "", "inotify's limits cannot be read: folders are polled if it is not available")}
		}
		if n, err := strconv.Atoi(strings.TrimSpace(string(raw))); err == nil && n < l.least {
			c := Warned("watching", "sysctl fs.inotify."+l.name+"="+strconv.Itoa(l.least),
				"fs.inotify.%s is %d: beyond it folders are polled every few seconds", l.name, n)
			if os.Getuid() == 0 {
				c = c.WithFix(fmt.Sprintf("Raise fs.inotify.%s to %d, now and after each boot (%s)?", l.name, l.least,
					sysctlFile), func(context.Context) error { return raiseLimit(l.name, l.least) })
			}
			return []Check{c}
		}
	}
	return []Check{Fine("watching", "inotify")}
}

// sysctlFile is where the kernel's settings of ours lie for the next boot.
const sysctlFile = "/etc/sysctl.d/90-sluice.conf"

// raiseLimit sets one of inotify's limits, now and for each boot.
func raiseLimit(name string, to int) error {
	if err := os.WriteFile("/proc/sys/fs/inotify/"+name, []byte(strconv.Itoa(to)), 0o644); err != nil {
		return err
	}
	f, err := os.OpenFile(sysctlFile, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(f, "fs.inotify.%s = %d\n", name, to)
	return errors.Join(err, f.Close())
}

// HasDesktop reports whether there is a session bus that notices can be shown through.
func HasDesktop(con *console.Console) bool {
	if con.Getenv("DBUS_SESSION_BUS_ADDRESS") != "" {
		return true
	}
	_, err := os.Stat("/run/user/" + strconv.Itoa(os.Getuid()) + "/bus")
	return err == nil
}
