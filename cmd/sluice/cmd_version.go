package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"sluice/internal/fault"

	"github.com/spf13/cobra"
)

// version is set by the linker: a tag, or a commit.
var version = "devel"

func (a *app) versionCommand() *cobra.Command {
	return a.jsonFlag(&cobra.Command{
		Use:   "version",
		Short: "say which sluice this is",
		Long: `Prints the version, the commit it was built from where that is known, and the Go it was
built with. Put it into every report of a fault.`,
		Example: "sluice version\nsluice version --json",
		Args:    between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			commit := commitOf()
			if a.json {
				return a.document(map[string]string{"version": version, "commit": commit, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH})
			}
			if commit != "" {
				commit = " (" + commit + ")"
			}
			a.print("sluice %s%s %s %s/%s", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			return nil
		},
	})
}

// commitOf is the commit the binary was built from; "" = not known.
func commitOf() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return ""
	}
	commit, dirty := "", ""
	for _, s := range info.Settings {
		switch s.Key {
		case "vcs.revision":
			commit = fmt.Sprintf("%.12s", s.Value)
		case "vcs.modified":
			if s.Value == "true" {
				dirty = "+"
			}
		}
	}
	return commit + dirty
}

func (a *app) completionCommand() *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "print the completion script of a shell: bash, zsh, fish or powershell",
		Long:      "Commands, flags, workflows, runs and gates are completed with the Tab key.",
		Example:   "source <(sluice completion bash)\nsluice completion fish > ~/.config/fish/completions/sluice.fish",
		Args:      between(1, 1),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.out, true)
			case "zsh":
				return root.GenZshCompletion(a.out)
			case "fish":
				return root.GenFishCompletion(a.out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.out)
			}
			return fault.Misused("one of: bash, zsh, fish, powershell", "no completion for the shell %q", clean(args[0]))
		},
	}
}
