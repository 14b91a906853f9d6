package notify

import (
	"fmt"
	"os"
	"os/user"
	"path/filepath"
	"strings"

	"sluice/internal/fault"
	"sluice/internal/text"
)

const (
	busVariable = "DBUS_SESSION_BUS_ADDRESS"
	userRunDir  = "/run/user"
)

// lookup returns a variable of an environment. The last value counts, as for a process started with
// it.
func lookup(env []string, name string) string {
	value := ""
	for _, kv := range env {
		if k, v, ok := strings.Cut(kv, "="); ok && k == name {
			value = v
		}
	}
	return value
}

func usesDBus(goos string) bool { return goos != "darwin" }

// sessionBus returns the address of the user's session bus. It only accepts unix sockets and TCP:
// "autolaunch:" would start a bus that nobody ends.
func sessionBus(address, runDir string) (string, error) {
	if address != "" {
		for part := range strings.SplitSeq(address, ";") {
			transport, _, _ := strings.Cut(part, ":")
			switch transport {
			case "unix", "tcp", "nonce-tcp":
			default:
				return "", fault.New("set it to the session's own, or use notify.command", "%w: %s names no running bus (%q)",
					errNoDesktop, busVariable, text.Clean(part, maxField))
			}
		}
		return address, nil
	}
	u, err := user.Current()
	if err != nil {
		return "", fmt.Errorf("%w: the user is unknown: %w", errNoDesktop, err)
	}
	socket := filepath.Join(runDir, u.Uid, "bus")
	if _, err := os.Stat(socket); err != nil {
		return "", fault.New("log in to a desktop, or use notify.command", "%w: %s is unset and there is no %s",
			errNoDesktop, busVariable, socket)
	}
	return "unix:path=" + socket, nil
}

// dress makes a clean notice's title and body safe for the text interpretation of each system.
func dress(goos, title, body string) (string, string) {
	if usesDBus(goos) {
		// By the notification specification, a body is markup and a summary is not. Some servers
		// read both as markup, so the summary goes without brackets.
		title = strings.NewReplacer("<", "‹", ">", "›").Replace(title)
		body = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;").Replace(body)
	}
	return undashed(title), undashed(body)
}

// undashed keeps a text from being read as an option when it is a program's argument.
func undashed(s string) string {
	if strings.HasPrefix(s, "-") {
		return " " + s
	}
	return s
}
