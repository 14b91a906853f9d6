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

func formatFiles(a *app, files, taskFiles []string, check bool) error {
	differ := 0
	for _, f := range taskFiles {
		changed, err := formatTasks(a, f, check)
		if err != nil {
			return err
		}
		if changed {
			differ++
		}
	}
	for _, f := range files {
		info, err := os.Stat(f)
		if err != nil {
			return err
		}
		src, err := os.ReadFile(f)
		if err != nil {
			return err
		}
		if len(src) > specs.MaxBytes {
			return fault.Failed("split it into several workflows", "%s: more than %d bytes", layout.ShortPath(f), specs.MaxBytes)
		}
		out, err := specs.Format(src)
		if err != nil {
			return fault.Failed("fix it first: `sluice validate` reports the faults", "%s: %s", layout.ShortPath(f), err)
		}
		if bytes.Equal(src, out) {
			continue
		}
		differ++
		a.Print("%s", layout.ShortPath(f))
		if check {
			continue
		}
		if err := atomicfile.Write(f, out, info.Mode().Perm()); err != nil {
			return err
		}
	}
	if check && differ > 0 {
		a.Note("%s to format: run `sluice fmt`", plural(differ, "file"))
		return fault.Exit(fault.ExitFailed)
	}
	return nil
}
