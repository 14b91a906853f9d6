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

// CheckCommand is the hidden command of this binary that runs inside, first, where somebody else could have put a link in
// the place of what is mounted, between the look at it and the mount. It reads what was laid out, and the environment of
// the command, where nobody else can; the command is its arguments.
const CheckCommand = "__check"

// exitOther is CheckMain's exit code where the sandbox is not what was laid out, as a shell's for what cannot be run.
const exitOther = 126

// Identity is a folder, wherever it is moved to.
type Identity struct {
	Path     string
	Dev, Ino uint64
}

// layout is what CheckMain goes by.
type layout struct {
	Same  []Identity
	Known []string // where something is mounted on purpose …
	Write []string // … those of which what is mounted, and what is mounted in it, can be written
	Hide  []string // folders of which nothing is seen
	Env   []string // of the command
}

// layout returns what is to be found inside, after all has been mounted.
func (l *laid) layout(env []string) []byte {
	out := layout{Same: l.plan.Same, Hide: l.plan.Hide, Known: slices.Clone(l.bare), Env: env}
	for _, m := range l.done {
		out.Known = append(out.Known, m.At)
		if m.Write {
			out.Write = append(out.Write, m.At)
		}
	}
	data, err := json.Marshal(out)
	if err != nil {
		return []byte{} // which CheckMain refuses
	}
	return data
}

// check returns what is not as it was laid out; mounts is what /proc/self/mountinfo says.
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

// unescape reads a path of mountinfo, in which blanks are octal numbers.
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

// maxLayout bounds what CheckMain reads.
const maxLayout = 16 << 20

// CheckMain is what runs inside a sandbox, before all else: it starts the command only in what was laid out.
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
	fmt.Fprintf(os.Stderr, "sluice: the sandbox is not what was laid out: %v: somebody changed the checkout meanwhile\n", err)
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
