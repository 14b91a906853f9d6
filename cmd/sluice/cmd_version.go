package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/fault"
)

// version is set by the linker: a tag, or a commit.
var version = "devel"

func versionCommand(a *app) *cobra.Command {
	return a.JSONFlag(&cobra.Command{
		Use:   "version",
		Short: "print the version of sluice",
		Long: `Prints the version, the commit it was built from, if known, and the Go version. Include it in every
bug report.`,
		Example: "sluice version\nsluice version --json",
		Args:    console.Between(0, 0),
		RunE: func(*cobra.Command, []string) error {
			return a.answer(map[string]string{"version": version, "commit": commitOf(), "go": runtime.Version(),
				"os": runtime.GOOS, "arch": runtime.GOARCH}, versionLine())
		},
	})
}

func versionLine() string {
	commit := commitOf()
	if commit != "" {
		commit = " (" + commit + ")"
	}
	return fmt.Sprintf("sluice %s%s %s %s/%s", version, commit, runtime.Version(), runtime.GOOS, runtime.GOARCH)
}

// commitOf returns the commit of the binary; "" = unknown.
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

func completionCommand(a *app) *cobra.Command {
	shells := []string{"bash", "zsh", "fish", "powershell"}
	return &cobra.Command{
		Use:       "completion SHELL",
		Short:     "print a completion script for bash, zsh, fish or powershell",
		Long:      "The Tab key then completes commands, flags, workflows, runs and gates.",
		Example:   "source <(sluice completion bash)\nsluice completion fish > ~/.config/fish/completions/sluice.fish",
		Args:      console.Between(1, 1),
		ValidArgs: shells,
		RunE: func(cmd *cobra.Command, args []string) error {
			root := cmd.Root()
			switch args[0] {
			case "bash":
				return root.GenBashCompletionV2(a.Out, true)
			case "zsh":
				return root.GenZshCompletion(a.Out)
			case "fish":
				return root.GenFishCompletion(a.Out, true)
			case "powershell":
				return root.GenPowerShellCompletionWithDesc(a.Out)
			}
			return fault.Misused("one of: bash, zsh, fish, powershell", "no completion for the shell %q", clean(args[0]))
		},
	}
}
