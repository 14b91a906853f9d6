package executor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sluice/internal/atomicfile"
	"sluice/internal/job"
	"sluice/internal/layout"
)

const maxSpecFile = 128 << 10

// firstLaunch lays out the folder of a run: its spec as it was, and runs/last.
func (e *Executor) firstLaunch(j job.Job) error {
	if c := j.RunInfo.Child; c != nil {
		if err := e.firstOfChild(j, c); err != nil {
			return err
		}
	}
	if err := e.MakeBelow(e.RunDir(j.Run)+"/files", 0o700); err != nil {
		return err
	}
	if err := e.MakeBelow(".workflow/signals/"+j.Run, 0o755); err != nil {
		return err
	}
	if j.RunInfo.Child != nil {
		return nil
	}
	e.keepSpec(j)
	return e.pointLast(j.Run)
}

// keepSpec copies the spec, as long as its file is the one the run goes by.
func (e *Executor) keepSpec(j job.Job) {
	to, err := e.Below(e.RunDir(j.Run) + "/spec.yaml")
	if err != nil {
		return
	}
	if _, err := os.Lstat(to); err == nil {
		return
	}
	data, _, err := atomicfile.OpenRegular(filepath.Join(e.Root, ".workflow", "specs"), j.RunInfo.Workflow+".yaml", maxSpecFile)
	sum := layout.HexSum(data)
	if err != nil || sum != j.Spec.Digest && sum != j.RunInfo.File {
		return // it was changed since: the journal has the one the run goes by
	}
	if err := atomicfile.Write(to, data, 0o600); err != nil {
		e.opt.Logf("%s: %v", e.Shown(to), err)
	}
}

// pointLast has runs/last point to the newest run.
func (e *Executor) pointLast(run string) error {
	last, err := e.Below(".workflow/runs/last")
	if err != nil {
		return err
	}
	e.pointing.Lock()
	defer e.pointing.Unlock()
	to, err := os.Readlink(last)
	if err == nil && (to == run || newer(to, run)) {
		return nil
	}
	if info, err := os.Lstat(last); err == nil && info.Mode()&fs.ModeSymlink == 0 {
		return nil // somebody's own file: left alone
	}
	tmp := filepath.Join(filepath.Dir(last), fmt.Sprintf(".last-%d", os.Getpid()))
	_ = os.Remove(tmp) // of a process that was killed and whose number came again
	if err := os.Symlink(run, tmp); err != nil {
		e.opt.Logf("runs/last: %v", err)
		return nil // a convenience: some systems let nobody make links
	}
	return os.Rename(tmp, last)
}

// newer says that run a of a workflow was started after run b of the same one.
func newer(a, b string) bool {
	wa, na := layout.NumberOf(a)
	wb, nb := layout.NumberOf(b)
	return wa == wb && na > nb
}
