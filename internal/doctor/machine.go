package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"time"

	"sluice/internal/console"
	"sluice/internal/text"
)

// gitMinor: the oldest git that has all that is asked of it is 2.36.
const gitMinor = 36

// Git looks at the version of git.
func Git(ctx context.Context) Check {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, "git", "version").Output()
	if err != nil {
		return Broken("git", "install git (2.36 or newer) on PATH", "%s", err)
	}
	m := regexp.MustCompile(`(\d+)\.(\d+)`).FindStringSubmatch(string(out))
	if m == nil {
		return Warned("git", "", "its version cannot be read: %s", text.Line(string(out)))
	}
	major, _ := strconv.Atoi(m[1]) // digits
	minor, _ := strconv.Atoi(m[2])
	if major < 2 || major == 2 && minor < gitMinor {
		return Broken("git", "upgrade it to 2.36 or newer", "%s is too old", m[0])
	}
	return Fine("git", "%s", text.Line(string(out)))
}

// StateFolder tries out the folder of all state: it is made where it is missing, and written to.
func StateFolder(home string) Check {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return Broken("state", "make it writable, or set XDG_STATE_HOME", "%s", err)
	}
	info, err := os.Stat(home)
	if err != nil {
		return Broken("state", "make it readable, or set XDG_STATE_HOME", "%s", err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return Warned("state", "chmod 700 "+home, "%s can be read by others (%s): it has journals and tokens", home,
			info.Mode().Perm()).
			WithFix("Let nobody else read "+home+"?", func(context.Context) error { return os.Chmod(home, 0o700) })
	}
	f, err := os.CreateTemp(home, ".doctor-*")
	if err != nil {
		return Broken("state", "free some disk space, or make it writable", "%s", err)
	}
	defer os.Remove(f.Name())
	if _, err = f.Write(make([]byte, 4096)); err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return Broken("state", "free some space on that disk: without it nothing is started", "%s", err)
	}
	return Fine("state", "%s", home)
}

// clockFloor is before any release: a clock that is earlier was never set.
const clockFloor = 2025

// Clock finds a clock that was never set.
func Clock(now time.Time) Check {
	if now.Year() < clockFloor {
		return Broken("clock", "set it: veto windows and deadlines depend on it", "it says %s", now.Format(time.DateTime))
	}
	return Fine("clock", "%s", now.Format("2006-01-02 15:04:05 MST"))
}

// bubblewrapPackage is what has the sandbox, and the tool that installs it here; nil where none is known.
func bubblewrapPackage() []string {
	for _, argv := range [][]string{
		{"apt-get", "install", "-y", "--no-install-recommends", "bubblewrap"}, {"dnf", "install", "-y", "bubblewrap"},
		{"pacman", "-S", "--noconfirm", "bubblewrap"}, {"zypper", "--non-interactive", "install", "bubblewrap"},
		{"apk", "add", "bubblewrap"},
	} {
		if _, err := exec.LookPath(argv[0]); err != nil {
			continue
		}
		if os.Getuid() == 0 {
			return argv
		}
		if _, err := exec.LookPath("sudo"); err == nil {
			return append([]string{"sudo"}, argv...)
		}
	}
	return nil
}

// WithBubblewrap adds a fix that installs bubblewrap, where it is missing and can be installed.
func WithBubblewrap(con *console.Console, c Check) Check {
	argv := bubblewrapPackage()
	if _, err := exec.LookPath("bwrap"); err == nil || argv == nil {
		return c
	}
	line := strings.Join(argv, " ")
	c.Advice = line
	return c.WithFix("Install bubblewrap, the sandbox for agents ("+line+")?", func(ctx context.Context) error {
		cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
		if _, ok := console.Terminal(con.In); ok {
			cmd.Stdin = os.Stdin // sudo asks for a password
		}
		out, err := cmd.CombinedOutput()
		if err != nil {
			lines := strings.Split(strings.TrimSpace(string(out)), "\n")
			return fmt.Errorf("%s: %w: %s", line, err, text.Line(lines[len(lines)-1]))
		}
		return nil
	})
}
