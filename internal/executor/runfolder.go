package executor

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/job"
	"sluice/internal/layout"
)

const maxSpecFile = 128 << 10

// firstLaunch lays out the folder of a run: its spec as it was, and runs/last.
func (co *Collector) firstLaunch(j job.Job) error {
	if c := j.RunInfo.Child; c != nil {
		if err := co.firstOfChild(j, c); err != nil {
			return err
		}
	}
	if err := co.MakeBelow(co.RunDir(j.Run)+"/files", 0o700); err != nil {
		return err
	}
	if err := co.MakeBelow(".workflow/signals/"+j.Run, 0o755); err != nil {
		return err
	}
	if j.RunInfo.Child != nil {
		return nil
	}
	co.keepSpec(j)
	return co.pointLast(j.Run)
}

// keepSpec copies the spec, as long as its file is the one the run goes by.
func (co *Collector) keepSpec(j job.Job) {
	to, err := co.Below(co.RunDir(j.Run) + "/spec.yaml")
	if err != nil {
		return
	}
	if _, err := os.Lstat(to); err == nil {
		return
	}
	data, _, err := atomicfile.OpenRegular(filepath.Join(co.Root, ".workflow", "specs"), j.RunInfo.Workflow+".yaml", maxSpecFile)
	sum := layout.HexSum(data)
	if err != nil || sum != j.Spec.Digest && sum != j.RunInfo.File {
		return // it was changed since: the journal has the one the run goes by
	}
	if err := atomicfile.Write(to, data, 0o600); err != nil {
		co.opt.Logf("%s: %v", co.Shown(to), err)
	}
}

// pointLast has runs/last point to the newest run.
func (co *Collector) pointLast(run string) error {
	last, err := co.Below(".workflow/runs/last")
	if err != nil {
		return err
	}
	co.pointing.Lock()
	defer co.pointing.Unlock()
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
		co.opt.Logf("runs/last: %v", err)
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

// firstOfChild lays out the folder of a child run.
func (co *Collector) firstOfChild(j job.Job, c *engine.ChildOf) error {
	if c.Task == "" {
		return nil
	}
	return co.WriteFile(co.RunDir(j.Run)+"/"+layout.TaskName, append([]byte(shownTask(c.Body)), '\n'))
}

// placeChild records where the folder of a child run is, before anything is laid out there.
func (co *Collector) placeChild(run string, c *engine.ChildOf) error {
	file := co.FolderFile(run)
	var dir string
	if err := layout.Load(file, &dir); err == nil && dir == c.Dir {
		return nil
	}
	return layout.Save(file, c.Dir)
}
