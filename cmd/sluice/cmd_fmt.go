package main

import (
	"bytes"
	"os"

	"github.com/spf13/cobra"

	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/layout"
	"sluice/specs"
)

func fmtCommand(a *app) *cobra.Command {
	var check bool
	cmd := &cobra.Command{
		Use:   "fmt [SPEC|TASKS.json...]",
		Short: "format specs and task files; comments stay",
		Long: `Rewrites specs in one layout, so that changes are easy to review. Comments, the order of keys and
the meaning stay. Without a name it formats all of .workflow/specs/. A task file gets one line for
each key. --check writes nothing: it names the files that would change and exits 1 (for CI).`,
		Example: "sluice fmt\nsluice fmt --check\nsluice fmt to-do.json",
		Args:    console.Between(0, -1),
		RunE: func(cmd *cobra.Command, args []string) error {
			taskFiles, specs := taskFilesOf(args)
			files, err := specArgs(a, cmd, specs, taskFiles)
			if err != nil {
				return err
			}
			return formatFiles(a, files, taskFiles, check)
		},
	}
	cmd.Flags().BoolVar(&check, "check", false, "only name the files whose layout differs, and exit 1")
	return cmd
}

// formatFiles formats all files that it can, and reports the others.
func formatFiles(a *app, files, taskFiles []string, check bool) error {
	differ := 0
	var bad []error
	do := func(files []string, one func(*app, string, bool) (bool, error)) {
		for _, f := range files {
			changed, err := one(a, f, check)
			if err != nil {
				bad = append(bad, err)
			} else if changed {
				differ++
			}
		}
	}
	do(taskFiles, formatTasks)
	do(files, formatSpec)
	if check && differ > 0 {
		a.Note("%s to format: run `sluice fmt`", plural(differ, "file"))
	}
	switch {
	case len(bad) == 1:
		return bad[0]
	case len(bad) > 1:
		for _, err := range bad {
			a.Note("%s", oneLine(explain(err).What()))
		}
		return fault.Failed("fix them first: `sluice validate` reports the faults", "%s cannot be formatted",
			plural(len(bad), "file"))
	case check && differ > 0:
		return fault.Exit(fault.ExitFailed)
	}
	return nil
}

// formatSpec formats a spec; it reports whether that differs.
func formatSpec(a *app, f string, check bool) (differs bool, err error) {
	info, err := os.Stat(f)
	if err != nil {
		return false, err
	}
	src, err := os.ReadFile(f)
	if err != nil {
		return false, err
	}
	if len(src) > specs.MaxBytes {
		return false, fault.Failed("split it into several workflows", "%s: more than %d bytes", layout.ShortPath(f),
			specs.MaxBytes)
	}
	out, err := specs.Format(src)
	if err != nil {
		return false, fault.Failed("fix it first: `sluice validate` reports the faults", "%s:%s", layout.ShortPath(f), err)
	}
	if bytes.Equal(src, out) {
		return false, nil
	}
	a.Print("%s", layout.ShortPath(f))
	if check {
		return true, nil
	}
	return true, atomicfile.Write(f, out, info.Mode().Perm())
}
