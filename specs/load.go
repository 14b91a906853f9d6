package specs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"sluice/engine"
	"sluice/internal/fault"
	"sluice/internal/layout"
)

// Load reads a spec. It is pure. It returns either the compiled spec or all faults, sorted by
// position. file is the name in faults; unless it is "", its base name must be the workflow's id.
//
// Counts and durations that are expressions use the defaults of the vars; those that read a
// required var use their own default. LoadFor returns a run's values. Schemas in files have no
// Source: see LoadFile and Pin.
func Load(file string, src []byte) (*engine.Spec, []Fault) { return LoadFor(file, src, nil) }

// LoadFor is Load for a run started with vars: they determine counts, durations and other values
// fixed at the start.
func LoadFor(file string, src []byte, vars map[string]any) (*engine.Spec, []Fault) {
	if file != "" {
		return resultOf(load(file, src, sources{handed: handed{given: vars}}))
	}
	own, rest := unpin(src) // a pinned text includes its child runs' workflows
	spec, faults := resultOf(load(file, own, sources{handed: handed{given: vars}, flows: rest.read}))
	if spec != nil {
		spec.Digest = Digest(src)
	}
	return spec, faults
}

// sources is where a spec's compilation takes what is not in its text.
type sources struct {
	handed
	schemas schemaReader // nil: schemas in files are not read
	flows   flowReader   // nil: workflows of child runs are not read
	above   []string     // the workflows whose child this one is, outermost first
}

// schemaReader reads the schema file at a path below the repo's root.
type schemaReader func(path string) ([]byte, error)

// load makes the passes that the package doc names. Faults in one pass do not keep the next from
// what it can read, so that a person gets them all at once; only a spec without faults is linked.
// The compiler, which has the spec, is nil if there are faults.
func load(file string, src []byte, from sources) (*compiler, []Fault) {
	r := &reader{book{file: file}}
	root := r.parse(src)
	if root == nil {
		return nil, r.sorted()
	}
	var doc specDoc
	r.object(root, reflect.ValueOf(&doc).Elem(), topName)
	c := &compiler{}
	c.values = values{reader: r, doc: &doc, from: from, world: world{said: from.said},
		spec: &engine.Spec{Digest: Digest(src)}, notes: book{file: file}}
	c.compile()
	if max(len(doc.Steps), len(doc.Gates)) > MaxSteps {
		r.pos(1, 1, "the workflow has more than %d steps or gates: split it", MaxSteps)
	}
	if len(r.faults) == 0 {
		c.link()
	} else {
		c.graphFaults(c.spec.Cycles()) // linking would have found them
	}
	if len(r.faults) > 0 {
		return nil, r.sorted()
	}
	return c, nil
}

// resultOf is what a caller gets of a load: the spec, or its faults.
func resultOf(c *compiler, faults []Fault) (*engine.Spec, []Fault) {
	if c == nil {
		return nil, faults
	}
	return c.spec, nil
}

// Digest returns the hex SHA-256 of a spec's text.
func Digest(src []byte) string {
	sum := sha256.Sum256(src)
	return hex.EncodeToString(sum[:])
}

// LoadFile reads the spec at path, and schemas in files below the repo's root, which it finds above
// the spec. Unreadable files are faults too.
func LoadFile(path string) (*engine.Spec, []Fault) { return resultOf(loadFile(path)) }

// Notes returns remarks on the spec at path that are no faults; none if it has faults.
func Notes(path string) []Fault {
	c, _ := loadFile(path)
	if c == nil {
		return nil
	}
	return c.notes.sorted()
}

func loadFile(path string) (*compiler, []Fault) {
	src, err := readBounded(path)
	if err != nil {
		return nil, []Fault{{File: path, Line: 1, Col: 1, Message: reason(err)}}
	}
	return load(path, src, below(rootOf(path)))
}

// rootOf returns the root of the repo that has the spec in its .workflow/specs, else the spec's
// folder: a spec elsewhere is checked as if that were the root.
func rootOf(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	if root, ok := strings.CutSuffix(filepath.ToSlash(filepath.Dir(abs)), "/"+layout.SpecsDir); ok {
		return filepath.FromSlash(root + "/")
	}
	return filepath.Dir(abs)
}

// schemasBelow reads schema files below root. No link leads out of it.
func schemasBelow(root string) schemaReader {
	return func(path string) ([]byte, error) {
		r, err := os.OpenRoot(root)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		f, err := r.OpenFile(filepath.FromSlash(path), openFlags, 0)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return boundedFrom(f)
	}
}

// openFlags keep the open of a named pipe from waiting for a writer: see open(2), O_NONBLOCK.
const openFlags = os.O_RDONLY | syscall.O_NONBLOCK

// readBounded reads a regular file. Of one longer than MaxBytes it returns one byte more, so that the
// caller can refuse it. It looks before it opens, because opening a device can have effects.
func readBounded(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file")
	}
	f, err := os.OpenFile(path, openFlags, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return boundedFrom(f)
}

// boundedFrom is readBounded for an open file.
func boundedFrom(f *os.File) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file")
	}
	return io.ReadAll(io.LimitReader(f, MaxBytes+1))
}

// reason returns why a file cannot be read, without its path, which the fault has.
func reason(err error) string { return "cannot be read: " + fault.WithoutPath(err).Error() }

// Find lists the specs of the repo at root, sorted, without dotfiles. A missing folder has no
// specs.
func Find(root string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(layout.SpecsDir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("specs: %w", err)
	}
	var out []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".yaml" && !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
			out = append(out, filepath.Join(root, filepath.FromSlash(layout.SpecsDir), e.Name()))
		}
	}
	slices.Sort(out)
	return out, nil
}

// compactJSON returns the JSON value without white space, its keys sorted.
func compactJSON(b []byte) (json.RawMessage, error) {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}

// LoadWith is Load for a spec whose child workflows are given, by id. A child that flows lacks is a
// fault, as one that does not exist.
func LoadWith(file string, src []byte, flows map[string][]byte) (*engine.Spec, []Fault) {
	return resultOf(load(file, src, sources{flows: func(_, id string) ([]byte, string, error) {
		b, ok := flows[id]
		if !ok {
			return nil, id + ".yaml", fs.ErrNotExist
		}
		return b, id + ".yaml", nil
	}}))
}
