package folders

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tree"
)

// BegunAgain is Begun for what follows the work: a refusal is an error like any other.
func (x *places) BegunAgain(ctx context.Context, j job.Job, st *engine.Step) (b tree.Begin, err error) {
	err = x.Persist(ctx, j.Key, func() (err error) {
		b, err = x.Begun(ctx, j, st, j.Attempt.N)
		return err
	})
	return b, err
}

// WriteValues writes the outputs that are expressions, and returns why some could not be written.
func (x *Folders) WriteValues(ctx context.Context, what string, outs []engine.Output, env *engine.Env,
	dir string) []string {
	var why []string
	for _, o := range outs {
		if o.Value.Eval == nil {
			continue
		}
		p, err := o.Path.String(env)
		if err != nil {
			why = append(why, fmt.Sprintf("output %s: %v", o.Path.Source, err))
			continue
		}
		value, err := o.Value.Eval(env)
		if err == nil && value == nil {
			err = errors.New("it has no value")
		}
		if err != nil {
			why = append(why, fmt.Sprintf("output %s: %s: %v", p, o.Value.Source, err))
			continue
		}
		data, err := asFile(value)
		if err == nil {
			err = x.Persist(ctx, what, func() error { return x.Put(p, dir, data) })
		}
		if err != nil {
			why = append(why, fmt.Sprintf("output %s: %v", p, err))
		}
	}
	return why
}

// asFile returns a value as a file's content: text unchanged, else JSON.
func asFile(v any) ([]byte, error) {
	if s, ok := v.(string); ok {
		return []byte(s), nil
	}
	data, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, err
	}
	return append(data, '\n'), nil
}

// Put writes a file that the spec names: below .workflow/ in the root, any other in dir. A file
// that already has this content is left alone.
func (x *ground) Put(p, dir string, data []byte) error {
	base := dir
	if layout.IsState(p) {
		base = x.Root
	}
	to, err := layout.Under(base, path.Clean(filepath.ToSlash(p)))
	if err != nil {
		return err
	}
	if info, err := os.Lstat(to); err == nil && info.IsDir() {
		return fmt.Errorf("%s is a folder", p)
	}
	if old, err := atomicfile.Read(to, int64(len(data))); err == nil &&
		string(old) == string(data) {
		return nil
	}
	if err := atomicfile.MkdirBelow(base, filepath.Dir(to), 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	x.writing.Lock()
	defer x.writing.Unlock()
	return atomicfile.Write(to, data, 0o644)
}
