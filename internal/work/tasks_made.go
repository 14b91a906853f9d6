package work

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"sluice/internal/atomicfile"
	"sluice/internal/fault"
	"sluice/internal/job"
	"sluice/internal/tasks"
	"sluice/internal/text"
)

// beforeEnding ends the name of a replaced list file's old contents, in the folder of the list's
// attempt.
const beforeEnding = ".before"

// makeTasks writes a list's file from the value of its expression, and returns why it cannot. An
// existing file with the same contents stays (a crash came after the write), one that this run
// wrote is replaced, and any other is never overwritten.
func (k *Work) makeTasks(ctx context.Context, j job.Job) (why string) {
	rel := j.Tasks.Path
	data, why := taskText(j)
	if why != "" {
		return why
	}
	err := k.Persist(ctx, j.Key, func() error {
		path, err := k.Below(rel)
		if err != nil {
			return err
		}
		for { // until nobody changes it meanwhile
			old, st, err := atomicfile.OpenRegular(filepath.Dir(path), filepath.Base(path), tasks.MaxBytes)
			switch {
			case errors.Is(err, fs.ErrNotExist):
				return k.Folders.Put(rel, k.Root, data)
			case errors.Is(err, atomicfile.ErrNotRegular):
				why = inTheWay(j, "no regular file")
				return nil
			case err == nil && string(old) == string(data):
				return nil
			case !j.Tasks.Own && (err == nil || errors.Is(err, atomicfile.ErrTooLarge)):
				why = inTheWay(j, "this run has not written it")
				return nil
			case err != nil:
				return err
			}
			if err := k.WriteFile(k.JobDir(j)+"/"+filepath.Base(rel)+beforeEnding, old); err != nil {
				return err
			}
			err = k.Folders.Alone(func() error {
				_, err := atomicfile.Replace(path, data, st.Mode.Perm(), st)
				return err
			})
			if !errors.Is(err, atomicfile.ErrChanged) || ctx.Err() != nil {
				return err
			}
		}
	})
	if err != nil && why == "" {
		why = k.unwritten(j, err)
	}
	return why
}

// inTheWay returns why a file that is there is not written anew.
func inTheWay(j job.Job, what string) string {
	return fmt.Sprintf("%s is there already, and %s: move it away, then `sluice retry %s %s`", j.Tasks.Path, what, j.Run,
		j.Step)
}

// unwritten returns why the task file is not written, which is logged too.
func (k *Work) unwritten(j job.Job, err error) string {
	why := fmt.Sprintf("the task file %s cannot be written: %s", j.Tasks.Path, fault.WithoutPath(err))
	k.Logf("%s: %s", j.Key, why)
	return why
}

// taskText returns the value as a task file, or why it is none.
func taskText(j job.Job) (data []byte, why string) {
	from := fmt.Sprintf("step %s: for_each: tasks: %s", j.Step, j.Tasks.From)
	if first := j.Tasks.Make[0]; first != '[' && first != '{' {
		return nil, fmt.Sprintf("%s: want a list of tasks or a task file, found %s", from,
			text.Clip(string(j.Tasks.Make), maxShownValue))
	}
	if data = tasks.Format(j.Tasks.Make); data == nil {
		return nil, fmt.Sprintf("%s: it would have more than %d MiB: split the list", from, tasks.MaxBytes>>20)
	}
	_, fault := tasks.Read(data)
	if fault == nil {
		return data, ""
	}
	why = fmt.Sprintf("%s: it is no list of tasks and no task file: %s", from, fault.Why)
	there := text.Clip(string(j.Tasks.Make), maxShownValue)
	if lines := strings.Split(string(data), "\n"); fault.Line > 1 && fault.Line <= len(lines) {
		there = text.Clip(strings.TrimSpace(lines[fault.Line-1]), maxShownValue)
	}
	if !strings.HasSuffix(why, there) {
		why += ": there is " + there
	}
	return nil, why
}

// maxShownValue is how many bytes of an invalid value are shown.
const maxShownValue = 200
