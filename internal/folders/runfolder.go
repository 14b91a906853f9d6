package folders

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sluice/internal/atomicfile"
	"sluice/internal/job"
	"sluice/internal/layout"
	"sluice/internal/tasks"
)

const maxSpecFile = 128 << 10

// FirstLaunch creates the folder of a run, with a copy of its spec, that of its pid files, and runs/last. Its
// folder of files is made last: where that is, the rest was made before.
func (x *Folders) FirstLaunch(j job.Job) error {
	if c := j.RunInfo.Child; c != nil && c.Task != "" {
		task := append([]byte(tasks.Shown(c.Body)), '\n')
		if err := x.WriteFile(x.RunDir(j.Run)+"/"+layout.TaskName, task); err != nil {
			return err
		}
	}
	if err := x.MakeBelow(layout.SignalsDir+"/"+j.Run, 0o755); err != nil {
		return err
	}
	dir := x.RunDir(j.Run)
	files := dir + "/files"
	if atomicfile.PlainDir(x.Path(files)) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(x.PIDFile(j.Run+"/")), 0o700); err != nil {
		return err
	}
	if j.RunInfo.Child == nil {
		if err := x.MakeBelow(dir, 0o700); err != nil {
			return err
		}
		x.keepSpec(j)
		if err := x.pointLast(j.Run); err != nil {
			return err
		}
	}
	return x.MakeBelow(files, 0o700)
}

// keepSpec copies the spec while its file is the one that the run follows.
func (x *Folders) keepSpec(j job.Job) {
	to, err := x.Below(x.RunDir(j.Run) + "/spec.yaml")
	if err != nil {
		return
	}
	if _, err := os.Lstat(to); err == nil {
		return
	}
	data, _, err := atomicfile.OpenRegular(x.Path(layout.SpecsDir), j.RunInfo.Workflow+".yaml", maxSpecFile)
	sum := layout.HexSum(data)
	if err != nil || sum != j.Spec.Digest && sum != j.RunInfo.File {
		return // changed since: the journal has the run's spec
	}
	if err := atomicfile.Write(to, data, 0o600); err != nil {
		x.Logf("%s: %v", x.Shown(to), err)
	}
}

// pointLast links runs/last to the newest run.
func (x *Folders) pointLast(run string) error {
	last, err := x.Below(layout.RunsDir + "/last")
	if err != nil {
		return err
	}
	x.pointing.Lock()
	defer x.pointing.Unlock()
	to, err := os.Readlink(last)
	if err == nil && (to == run || newer(to, run)) {
		return nil
	}
	if info, err := os.Lstat(last); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return nil // somebody's own file: left alone
	}
	tmp := filepath.Join(filepath.Dir(last), fmt.Sprintf(".last-%d", os.Getpid()))
	_ = os.Remove(tmp) // of a killed process with the same number
	if err := os.Symlink(run, tmp); err != nil {
		x.Logf("runs/last: %v", err)
		return nil // a convenience: some systems forbid links
	}
	return os.Rename(tmp, last)
}

// newer reports whether run a was started after run b of the same workflow.
func newer(a, b string) bool {
	wa, na := layout.NumberOf(a)
	wb, nb := layout.NumberOf(b)
	return wa == wb && na > nb
}

// PlaceChild records the folder of a child run, before anything is created there. It reports false if
// ctx ended first.
func (x *Folders) PlaceChild(ctx context.Context, j job.Job) bool {
	c := j.RunInfo.Child
	if c == nil {
		return true
	}
	err := x.Persist(ctx, j.Key, func() error {
		file := x.FolderFile(j.Run)
		var dir string
		if err := layout.Load(file, &dir); err == nil && dir == c.Dir {
			return nil
		}
		return layout.Save(file, c.Dir)
	})
	return err == nil || ctx.Err() == nil
}
