package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
)

// CheckCommand is the hidden command of this binary that runs first inside, if somebody could have
// replaced a mounted path with a link between the check and the mount. It reads the expected layout
// and the command's environment from a descriptor, where nobody else can; its arguments are the
// command.
const CheckCommand = "__check"

// exitOther is CheckMain's exit code if the sandbox differs from its layout; shells use it for what
// cannot be run.
const exitOther = 126

// Identity identifies a folder, even after a move.
type Identity struct {
	Path     string
	Dev, Ino uint64
}

// layout is CheckMain's input.
type layout struct {
	Same  []Identity
	Known []string // intended mount points …
	Write []string // … those that are writable, with the mounts inside them
	Hide  []string // folders that must stay invisible
	Env   []string // of the command
}

// layout returns the expected mounts.
func (l *laid) layout(env []string) []byte {
	out := layout{Same: l.plan.Same, Hide: l.plan.Hide, Known: slices.Clone(l.bare), Env: env}
	for _, m := range l.done {
		out.Known = append(out.Known, m.At)
		if m.Write {
			out.Write = append(out.Write, m.At)
		}
	}
	data, _ := json.Marshal(out) // texts and numbers only
	return data
}

// check returns how the mounts, from /proc/self/mountinfo, differ from the layout.
func (l layout) check(mounts string) error {
	for line := range strings.Lines(mounts) {
		fields := strings.Fields(line)
		if len(fields) < 6 {
			return fmt.Errorf("a mount that cannot be read: %q", line)
		}
		at, options := unescape(fields[4]), strings.Split(fields[5], ",")
		in := func(dirs []string) bool {
			return slices.ContainsFunc(dirs, func(d string) bool { return Inside(d, at) })
		}
		switch {
		case slices.Contains(l.Known, at):
		case !slices.Contains(options, "ro") && !in(append([]string{"/dev"}, l.Write...)):
			return fmt.Errorf("%s can be written", at)
		case in(l.Hide):
			return fmt.Errorf("%s is seen", at)
		}
	}
	for _, want := range l.Same {
		got, err := Identify("/", want.Path)
		if err != nil || got.Dev != want.Dev || got.Ino != want.Ino {
			return fmt.Errorf("%s is another folder: %v", want.Path, err)
		}
		if !strings.Contains(mounts, " "+escape(want.Path)+" ") {
			return fmt.Errorf("%s is not mounted", want.Path)
		}
	}
	return nil
}

// unescape decodes a path of mountinfo, where spaces are octal.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func escape(s string) string {
	return strings.NewReplacer(" ", `\040`, "\t", `\011`, "\n", `\012`, `\`, `\134`).Replace(s)
}

// maxLayout limits CheckMain's input.
const maxLayout = 16 << 20

// CheckMain runs first inside a sandbox: it starts the command only if the mounts match the layout.
func CheckMain(args []string) int {
	l, err := readLayout()
	if err != nil || len(args) == 0 {
		fmt.Fprintln(os.Stderr, "sluice: it is started by the daemon, inside a sandbox, not by hand")
		return exitOther
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err == nil {
		err = l.check(string(mounts))
	}
	if err == nil {
		err = execute(args, l.Env)
	}
	fmt.Fprintf(os.Stderr,
		"sluice: the sandbox differs from its layout: %v: somebody changed the checkout meanwhile\n", err)
	return exitOther
}

func readLayout() (l layout, err error) {
	f := os.NewFile(layoutFd, "layout")
	if f == nil {
		return l, fs.ErrNotExist
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxLayout))
	if err == nil {
		err = json.Unmarshal(data, &l)
	}
	return l, err
}
