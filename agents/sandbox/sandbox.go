// Package sandbox says how a launch is started so that it can change only what is its own: its checkout, its inbox, its
// private home. On Linux that is done by bubblewrap (bwrap), on macOS by sandbox-exec. The package makes the arguments
// and tries them out; it starts no launch itself.
//
// Inside are, and nothing else of the machine:
//
//   - the machine's programs, libraries and settings (/usr, /etc, /opt, …), read-only, without what not everybody on the
//     machine may read of the settings; tools on PATH, and what the person's settings name;
//   - the checkout, writable, with a git folder of the launch's own in the place of the repo's, of which nothing but the
//     objects is seen: no git outside reads what an agent wrote;
//   - .workflow/, read-only, with the launch's own inbox in the place of .workflow/signals;
//   - the home, which is a private folder, and what the settings show of the real one;
//   - /tmp and /var/tmp, which are empty.
//
// It has processes, a network and users of its own; /proc shows nothing else. A filter denies the system calls by which
// more could be had. What a naive sandbox leaves open, and how each was found, is in docs/trust.md.
package sandbox

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"sluice/internal/fault"
)

// Paths inside.
const (
	// Tool is where the sluice binary is inside.
	Tool         = "/run/sluice/sluice"
	fallbackHome = "/run/sluice/home" // where a home is "/" or none
)

// uid is who the processes inside seem to be where they are root outside: some programs refuse to work as root.
const uid = "1000"

// ErrUnavailable is wrapped by each reason why there is no sandbox to be had.
var ErrUnavailable = errors.New("no sandbox")

// Networks of a launch.
const (
	NetNone  = "none"  // its own loopback only
	NetProxy = "proxy" // its own loopback, on which a proxy listens: see InfoFd
	NetHost  = "host"  // the machine's: abstract sockets and loopback services of the machine are in reach
)

// Mount shows a path of the machine inside, at the same place unless At says another.
type Mount struct {
	Path  string
	At    string // "" = Path
	Write bool
	Try   bool // it may be missing
}

// Shows reports whether path is seen at the place at by this mount already, and written to where write says so.
func (m Mount) Shows(path, at string, write bool) bool {
	if m.Write != write || m.Try || !Inside(m.at(), at) {
		return false
	}
	rel, err := filepath.Rel(m.at(), at)
	return err == nil && filepath.Join(m.Path, rel) == path
}

// Uncovered leaves out what a later one of the mounts is laid over: it is not seen, and each mount costs a launch a fifth of
// a millisecond.
func Uncovered(mounts []Mount) (out []Mount) {
	for i, m := range mounts {
		if !slices.ContainsFunc(mounts[i+1:], func(n Mount) bool { return !n.Try && Inside(n.at(), m.at()) }) {
			out = append(out, m)
		}
	}
	return out
}

// at is where it is seen.
func (m Mount) at() string {
	if m.At == "" {
		return m.Path
	}
	return m.At
}

// Plan is what a launch may see and do. All paths are absolute and real.
type Plan struct {
	Self    string   // this binary
	Home    string   // the real home, which is not seen; "" = there is none
	Private string   // the folder that stands for it, writable
	Hide    []string // folders of which nothing is seen: sluice's own state
	Tools   []Mount  // of the machine: what is on PATH, and what the settings name
	Shown   []Mount  // after these, in this order, each over those before
	Inbox   string   // the launch's own folder for signals …
	Inboxes []string // … and where it is seen: each .workflow/signals
	Own     []string // folders below .workflow/ that are the launch's to write
	Cwd     string
	Network string   // one of NetNone, NetProxy, NetHost
	Ports   []string // NetProxy, in place: what of this machine's is reached
	Root    bool     // the launch is root outside
	InPlace bool     // nothing can be seen elsewhere than where it is: macOS
	// Same are folders to be mounted that somebody else may move meanwhile, and put a link in their place: inside it is made
	// sure that they, and nothing else, can be written.
	Same []Identity
}

// HomeInside is what HOME is inside.
func (p Plan) HomeInside() string {
	switch {
	case p.InPlace:
		return p.Private
	case p.Home == "" || p.Home == "/":
		return fallbackHome
	}
	return p.Home
}

// shown is what is shown beside the system, in its order.
func (p Plan) shown() []Mount { return slices.Concat(p.Tools, p.Shown) }

// HoldsHome reports whether the real home can be written: what lies in it runs when its owner next logs in.
func (p Plan) HoldsHome() bool {
	return p.Home != "" && slices.ContainsFunc(p.shown(), func(m Mount) bool { return m.Write && Inside(m.Path, p.Home) })
}

// Bubblewrap gives the options of bubblewrap for the plan and the environment inside, and what CheckMain goes by; nil where
// there is nothing to check.
func (p Plan) Bubblewrap(secrets []secret, env []string) (options []string, within []byte) {
	var a []string
	add := func(args ...string) { a = append(a, args...) }
	add("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-cgroup-try")
	add("--cap-drop", "ALL", "--seccomp", strconv.Itoa(filterFd))
	if p.Root {
		add("--uid", uid, "--gid", uid)
	}
	if p.Network != NetHost {
		add("--unshare-net")
	}
	if p.Network == NetProxy {
		add("--info-fd", strconv.Itoa(InfoFd), "--block-fd", strconv.Itoa(BlockFd))
	}
	add("--die-with-parent", "--new-session", "--disable-userns")
	l := laid{plan: p, add: add}
	l.systemMounts()
	l.mask(secrets)
	add("--proc", "/proc", "--remount-ro", "/proc", "--dev", "/dev")
	for _, dir := range scratch() {
		l.empty(dir)
	}
	for _, dir := range bare() {
		add("--dir", dir)
	}
	if p.Private != "" {
		l.show(Mount{Path: p.Private, At: p.HomeInside(), Write: true})
	}
	for _, m := range p.shown() {
		l.show(m)
	}
	for _, at := range p.Inboxes {
		l.show(Mount{Path: p.Inbox, At: at, Write: true})
	}
	for _, dir := range p.Own {
		l.show(Mount{Path: dir, Write: true})
	}
	l.show(Mount{Path: p.Self, At: Tool})
	add("--remount-ro", "/", "--chdir", p.Cwd, "--clearenv")
	if len(p.Same) > 0 {
		return a, l.layout(env)
	}
	for _, kv := range env {
		name, value, _ := strings.Cut(kv, "=")
		add("--setenv", name, value)
	}
	return a, nil
}

// laid is what has been mounted so far.
type laid struct {
	plan Plan
	add  func(args ...string)
	done []Mount
	bare []string // folders that are empty, and can be written
}

// show mounts m over what is there. What is hidden and lies in it is hidden again: a checkout may hold the state folder.
func (l *laid) show(m Mount) {
	if m.At == "" {
		m.At = m.Path
	}
	l.stay(m.At)
	how := "--ro-bind"
	if m.Write {
		how = "--bind"
	}
	if m.Try {
		how += "-try"
	}
	l.add(how, m.Path, m.At)
	l.done = append(l.done, m)
	for _, dir := range l.plan.Hide {
		if !Inside(m.Path, dir) || !isDir(dir) {
			continue
		}
		if rel, err := filepath.Rel(m.Path, dir); err == nil {
			at := filepath.Join(m.At, rel)
			l.stay(at)
			l.empty(at)
		}
	}
}

// stay keeps in its place what is to be mounted at path inside a folder that can be written: of the folders between the
// two each is mounted on itself. Else one of them could be moved away, with what is mounted in it, and another be made in
// its place, which is what is seen outside then.
func (l *laid) stay(path string) {
	var in Mount
	for _, m := range l.done {
		if m.At != path && Inside(m.At, path) {
			in = m
		}
	}
	if !in.Write || in.Path != in.At {
		return
	}
	var between []string
	for dir := filepath.Dir(path); dir != in.At; dir = filepath.Dir(dir) {
		between = append(between, dir)
	}
	for _, dir := range slices.Backward(between) {
		if isDir(dir) && !slices.ContainsFunc(l.done, func(m Mount) bool { return Inside(dir, m.At) }) {
			m := Mount{Path: dir, At: dir, Write: true}
			l.add("--bind-try", dir, dir)
			l.done = append(l.done, m)
		}
	}
}

// Seatbelt returns the arguments that start argv under macOS's sandbox-exec. There nothing can be mounted elsewhere: the
// launch is told its inbox by its own path. It was never run: see the README.
func (p Plan) Seatbelt(program string, argv []string) []string {
	var b strings.Builder
	rule := func(what, op, dir string) { fmt.Fprintf(&b, "(%s %s (subpath %s))\n", what, op, strconv.Quote(dir)) }
	b.WriteString("(version 1)\n(allow default)\n(deny file-write*)\n(allow file-write* (subpath \"/dev\"))\n")
	for _, dir := range append(slices.Clone(p.Hide), p.Home) {
		if dir != "" && dir != "/" {
			rule("deny", "file-read*", dir)
		}
	}
	if p.Network != NetHost {
		b.WriteString("(deny network*)\n")
	}
	if p.Network == NetProxy { // no network of its own: what stands for the proxy are the ports, and names are looked up outside
		b.WriteString("(allow network-outbound (remote tcp \"*:80\") (remote tcp \"*:443\") (literal \"/private/var/run/mDNSResponder\"))\n")
		for _, at := range p.Ports {
			_, port, _ := strings.Cut(at, ":") // made of a host and a port
			fmt.Fprintf(&b, "(allow network-outbound (remote tcp %s))\n", strconv.Quote("localhost:"+port))
		}
	}
	for _, m := range p.shown() {
		rule("allow", "file-read*", m.Path)
		if m.Write {
			rule("allow", "file-write*", m.Path)
		} else {
			rule("deny", "file-write*", m.Path)
		}
	}
	for _, dir := range p.Hide {
		if slices.ContainsFunc(p.shown(), func(m Mount) bool { return Inside(m.Path, dir) }) {
			rule("deny", "file-read*", dir)
			rule("deny", "file-write*", dir)
		}
		for _, m := range p.Shown {
			if Inside(dir, m.Path) {
				rule("allow", "file-read*", m.Path)
				rule(map[bool]string{true: "allow", false: "deny"}[m.Write], "file-write*", m.Path)
			}
		}
	}
	for _, dir := range append([]string{p.Inbox, p.Private}, p.Own...) {
		if dir != "" {
			rule("allow", "file-read*", dir)
			rule("allow", "file-write*", dir)
		}
	}
	rule("allow", "file-read*", p.Self)
	return append([]string{program, "-p", b.String()}, argv...)
}

// Inside reports whether path is dir or lies in it; both are absolute. It is asked some hundred times for a launch.
func Inside(dir, path string) bool {
	dir, path = filepath.Clean(dir), filepath.Clean(path)
	rest, ok := strings.CutPrefix(path, dir)
	return ok && filepath.IsAbs(dir) && (rest == "" || rest[0] == '/' || dir == "/")
}

func isDir(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir()
}

// NoLink returns why a path cannot be mounted over: a link lies there, which leads elsewhere.
func NoLink(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return fault.New("replace it by what it leads to", "%s is a link, which could lead the sandbox anywhere", path)
	}
	return nil
}
