// Package sandbox prepares launches so that they can change only what is their own: checkout,
// inbox, private home. It uses bubblewrap (bwrap) on Linux and sandbox-exec on macOS. The package
// builds the arguments and tests them; it starts no launch itself.
//
// Visible inside is only this part of the machine:
//
//   - the machine's programs, libraries and settings (/usr, /etc, /opt, …), read-only, without
//     settings that only some users may read; tools on PATH, and what the person's settings name;
//   - the checkout, writable, with the launch's own git folder in place of the repo's, of which
//     only the objects are visible: no git outside reads what an agent wrote;
//   - .workflow/, read-only, with the launch's own inbox in place of .workflow/signals;
//   - the home: a private folder with what the settings show of the real one;
//   - empty /tmp and /var/tmp.
//
// It has its own processes, network and users; /proc shows nothing else. A filter denies system
// calls that could escape. docs/sandbox.md says what a launch sees.
package sandbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"sluice/internal/fault"
)

// Paths inside.
const (
	// Tool is the path of the sluice binary inside.
	Tool         = "/run/sluice/sluice"
	fallbackHome = "/run/sluice/home" // if home is "/" or missing
)

// uid is the user inside if the launch is root outside: some programs refuse to run as root.
const uid = "1000"

// ErrUnavailable is wrapped by every reason why no sandbox is available.
var ErrUnavailable = errors.New("no sandbox")

// ErrUntried is wrapped where a fault of the machine, such as a full disk, kept the sandbox from being tried: nobody
// knows whether there is one, and nothing may be launched without it.
var ErrUntried error = untried{}

type untried struct{}

func (untried) Error() string { return "the sandbox could not be tried" }

// Is has callers try again, as after any fault of the machine that may pass.
func (untried) Is(target error) bool { return target == syscall.EAGAIN }

// Networks of a launch.
const (
	NetNone  = "none"  // its own loopback only
	NetProxy = "proxy" // its own loopback, on which a proxy listens: see InfoFd
	NetHost  = "host"  // the machine's: abstract sockets and loopback services of the machine are reachable
)

// Mount shows a path of the machine inside, at the same path unless At is set.
type Mount struct {
	Path  string
	At    string // "" = Path
	Write bool
	Try   bool // it may be missing
}

// Shows reports whether this mount already shows path at the place at, with the same write access.
func (m Mount) Shows(path, at string, write bool) bool {
	if m.Write != write || m.Try || !Inside(m.at(), at) {
		return false
	}
	rel, err := filepath.Rel(m.at(), at)
	return err == nil && filepath.Join(m.Path, rel) == path
}

// Uncovered drops mounts that a later one hides: each mount costs a launch a fifth of a
// millisecond.
func Uncovered(mounts []Mount) (out []Mount) {
	for i, m := range mounts {
		if !slices.ContainsFunc(mounts[i+1:], func(n Mount) bool { return !n.Try && Inside(n.at(), m.at()) }) {
			out = append(out, m)
		}
	}
	return out
}

// at returns its path inside.
func (m Mount) at() string { return cmp.Or(m.At, m.Path) }

// Plan is what a launch may see and do. All paths are absolute and real.
type Plan struct {
	Self    string   // this binary
	Home    string   // the real home, invisible inside; "" = none
	Private string   // the writable folder that replaces it
	Hide    []string // invisible folders: sluice's own state
	Tools   []Mount  // of the machine: what is on PATH, and what the settings name
	Shown   []Mount  // mounted after these, in this order, each over those before
	Inbox   string   // the launch's own folder for signals …
	Inboxes []string // … and its paths inside: each .workflow/signals
	Run     string   // the folder of its run in Inbox; "" = none
	Own     []string // folders below .workflow/ that the launch may write
	Cwd     string
	Network string   // one of NetNone, NetProxy, NetHost
	Ports   []string // NetProxy, in place: reachable ports of this machine
	Root    bool     // the launch is root outside
	InPlace bool     // paths inside equal paths outside: macOS
	// Same are mounted folders that somebody else could meanwhile move and replace with links. A
	// check inside ensures that they, and nothing else, are writable.
	Same []Identity
}

// HomeInside returns HOME inside.
func (p Plan) HomeInside() string {
	switch {
	case p.InPlace:
		return p.Private
	case p.Home == "" || p.Home == "/":
		return fallbackHome
	}
	return p.Home
}

// shown returns the mounts besides the system's, in order.
func (p Plan) shown() []Mount { return slices.Concat(p.Tools, p.Shown) }

// HoldsHome reports whether the real home is writable: files in it run at its owner's next login.
func (p Plan) HoldsHome() bool {
	return p.Home != "" && slices.ContainsFunc(p.shown(),
		func(m Mount) bool { return m.Write && Inside(m.Path, p.Home) })
}

// bubblewrap returns bubblewrap's options for the plan and the environment inside, and CheckMain's
// input, or nil if there is nothing to check.
func (p Plan) bubblewrap(system []folder, secrets []secret, env []string) (options []string, within []byte) {
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
	l.systemMounts(system)
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
		if p.Run != "" { // a mount point: no link can take its place while a file is moved out of it
			l.show(Mount{Path: filepath.Join(p.Inbox, p.Run), At: filepath.Join(at, p.Run), Write: true})
		}
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

// laid records the mounts so far.
type laid struct {
	plan Plan
	add  func(args ...string)
	done []Mount
	bare []string // empty, writable folders
}

// show mounts m over what is there. Hidden folders inside m are hidden again: a checkout may
// contain the state folder.
func (l *laid) show(m Mount) {
	m.Path, m.At = filepath.Clean(m.Path), filepath.Clean(m.at())
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

// stay pins a mount point at a clean path inside a writable folder by mounting each folder in
// between on itself. Otherwise one could be moved away with the mount and recreated, and the new one
// would be seen outside.
func (l *laid) stay(path string) {
	var in Mount
	for _, m := range l.done {
		if m.At != path && within(m.At, path) {
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
		if isDir(dir) && !slices.ContainsFunc(l.done, func(m Mount) bool { return within(dir, m.At) }) {
			m := Mount{Path: dir, At: dir, Write: true}
			l.add("--bind-try", dir, dir)
			l.done = append(l.done, m)
		}
	}
}

// Seatbelt returns the arguments that start argv under macOS's sandbox-exec. It cannot remap paths,
// so the launch gets its inbox's own path. It was never run: see the README.
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
	if p.Network == NetProxy { // without its own network, ports stand in for the proxy, and names are resolved outside
		b.WriteString("(allow network-outbound (remote tcp \"*:80\") (remote tcp \"*:443\") (literal " +
			"\"/private/var/run/mDNSResponder\"))\n")
		for _, at := range p.Ports {
			_, port, _ := strings.Cut(at, ":") // made from a host and a port
			fmt.Fprintf(&b, "(allow network-outbound (remote tcp %s))\n", strconv.Quote("localhost:"+port))
		}
	}
	show := func(m Mount) {
		rule("allow", "file-read*", m.Path)
		rule(map[bool]string{true: "allow", false: "deny"}[m.Write], "file-write*", m.Path)
	}
	for _, m := range p.shown() {
		show(m)
	}
	for _, dir := range p.Hide {
		if slices.ContainsFunc(p.shown(), func(m Mount) bool { return Inside(m.Path, dir) }) {
			rule("deny", "file-read*", dir)
			rule("deny", "file-write*", dir)
		}
		for _, m := range p.Shown {
			if Inside(dir, m.Path) {
				show(m)
			}
		}
	}
	for _, dir := range append([]string{p.Inbox, p.Private}, p.Own...) {
		if dir != "" {
			show(Mount{Path: dir, Write: true})
		}
	}
	rule("allow", "file-read*", p.Self)
	return append([]string{program, "-p", b.String()}, argv...)
}

// Inside reports whether path is dir or inside it; both are absolute.
func Inside(dir, path string) bool { return within(filepath.Clean(dir), filepath.Clean(path)) }

// within is Inside for clean paths. It is called some hundred times per launch.
func within(dir, path string) bool {
	rest, ok := strings.CutPrefix(path, dir)
	return ok && filepath.IsAbs(dir) && (rest == "" || rest[0] == '/' || dir == "/")
}

func isDir(dir string) bool {
	info, err := os.Lstat(dir)
	return err == nil && info.IsDir()
}

// NoLink returns an error if path is a link, which leads elsewhere and cannot be mounted over.
func NoLink(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return fault.New("replace it with its target", "%s is a link, which could lead the sandbox anywhere", path)
	}
	return nil
}
