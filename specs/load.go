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

	"sluice/engine"
	"sluice/internal/fault"
)

// Dir is where the specs of a repo lie, below its root.
const Dir = ".workflow/specs"

// Load reads a spec. It is pure. It gives the compiled spec, or all faults, sorted by position; never both. file is the
// name faults bear; its base name must bear the workflow's id, unless file is "".
//
// Counts and durations that are expressions have the value that the defaults of the vars give, those that read a
// required var their own default: LoadFor gives them for a run. Schemas that are files have no Source: see LoadFile, Pin.
func Load(file string, src []byte) (*engine.Spec, []Fault) { return LoadFor(file, src, nil) }

// LoadFor is Load for a run that was started with vars: counts, durations and what else is fixed at the start have the
// values these give.
func LoadFor(file string, src []byte, vars map[string]any) (*engine.Spec, []Fault) {
	if file == "" { // a pinned text has its child runs' workflows in it
		own, rest := unpin(src)
		spec, _, faults := load(file, own, vars, sources{flows: rest.read})
		if spec != nil {
			spec.Digest = Digest(src)
		}
		return spec, faults
	}
	spec, _, faults := load(file, src, vars, sources{})
	return spec, faults
}

// sources give what a spec names: nil = it stays unread.
type sources struct {
	schemas schemaReader
	flows   flowReader
	above   []string
	late    map[string]bool // see handed
	said    map[string]bool
}

// schemaReader gives the content of a schema's file.
type schemaReader func(path string) ([]byte, error)

func load(file string, src []byte, vars map[string]any, from sources) (*engine.Spec, *compiler, []Fault) {
	r := &reader{book{file: file}}
	root := r.parse(src)
	if root == nil {
		return nil, nil, r.sorted()
	}
	var doc specDoc
	r.object(root, reflect.ValueOf(&doc).Elem(), topName)
	c := &compiler{reader: r, doc: &doc, given: vars, schemas: from.schemas, flows: from.flows, above: from.above, late: from.late, world: world{said: from.said}, spec: &engine.Spec{Digest: Digest(src)}, notes: book{file: file}}
	c.compile()
	if max(len(doc.Steps), len(doc.Gates)) > MaxSteps {
		r.pos(1, 1, "the workflow has more than %d steps or gates: split it", MaxSteps)
	}
	if len(r.faults) == 0 {
		c.link()
	} else {
		c.graphFaults(c.spec.Cycles())
	}
	if len(r.faults) > 0 {
		return nil, nil, r.sorted()
	}
	return c.spec, c, nil
}

// Digest is the hex SHA-256 of a spec's text.
func Digest(src []byte) string {
	sum := sha256.Sum256(src)
	return hex.EncodeToString(sum[:])
}

// LoadFile reads the spec at path, with the schemas that are files below the repo's root, which it finds above the spec.
// What cannot be read is a fault too.
func LoadFile(path string) (*engine.Spec, []Fault) {
	src, err := readBounded(path, MaxBytes)
	if err != nil {
		return nil, []Fault{{File: path, Line: 1, Col: 1, Message: reason(err)}}
	}
	spec, _, faults := load(path, src, nil, below(rootOf(path)))
	return spec, faults
}

// Notes tells what is no fault of the spec at path, and worth saying; nothing where it has faults.
func Notes(path string) []Fault {
	src, err := readBounded(path, MaxBytes)
	if err != nil {
		return nil
	}
	_, c, _ := load(path, src, nil, below(rootOf(path)))
	if c == nil {
		return nil
	}
	return c.notes.sorted()
}

// rootOf gives the repo's root of a spec in .workflow/specs, else the spec's folder.
func rootOf(path string) string {
	abs, err := filepath.Abs(path)
	if err != nil {
		abs = path
	}
	if root, ok := strings.CutSuffix(filepath.ToSlash(filepath.Dir(abs)), "/"+Dir); ok {
		return filepath.FromSlash(root + "/")
	}
	return filepath.Dir(abs)
}

func schemasBelow(root string) schemaReader {
	return func(path string) ([]byte, error) {
		r, err := os.OpenRoot(root)
		if err != nil {
			return nil, err
		}
		defer r.Close()
		f, err := r.Open(filepath.FromSlash(path))
		if err != nil {
			return nil, err
		}
		defer f.Close()
		return boundedFrom(f, MaxBytes)
	}
}

// readBounded reads a regular file of at most max bytes and a bit: what is longer is for the caller to refuse.
func readBounded(path string, max int64) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return boundedFrom(f, max)
}

func boundedFrom(f *os.File, max int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("not a regular file")
	}
	return io.ReadAll(io.LimitReader(f, max+1))
}

// reason is why a file cannot be read, without its path, which the fault has.
func reason(err error) string { return "cannot be read: " + fault.WithoutPath(err).Error() }

// Find lists the specs of the repo at root, sorted. No folder is no specs. Dotfiles are none.
func Find(root string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(root, filepath.FromSlash(Dir)))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("specs: %w", err)
	}
	var out []string
	for _, e := range entries {
		if filepath.Ext(e.Name()) == ".yaml" && !strings.HasPrefix(e.Name(), ".") && !e.IsDir() {
			out = append(out, filepath.Join(root, filepath.FromSlash(Dir), e.Name()))
		}
	}
	slices.Sort(out)
	return out, nil
}

// compactJSON gives JSON without white space.
func compactJSON(b []byte) (json.RawMessage, error) {
	var v any
	if err := json.Unmarshal(b, &v); err != nil {
		return nil, err
	}
	return json.Marshal(v)
}
