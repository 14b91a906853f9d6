package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/layout"
	"sluice/internal/workflows"
	"sluice/internal/workspace"
	"sluice/specs"
)

// releaseFlow is the workflow of `sluice release`: the shipped one, or the repo's own by that name.
const releaseFlow = "release"

// What may change in a release: what it writes itself, and the audit, which grows with every run.
const (
	changelogFile = "CHANGELOG.md"
	auditDir      = layout.WorkflowDir + "/audit/"
)

// uncleanNamed is how many changed files the refusal names.
const uncleanNamed = 10

// releaseOptions are the flags of `sluice release`.
type releaseOptions struct {
	order
	version string // "" = the agent chooses
	remote  string // "" = where git would push
}

func releaseCommand(a *app) *cobra.Command {
	var o releaseOptions
	cmd := &cobra.Command{
		Use:   "release",
		Short: "make a release: notes, changelog, tag and push, after your yes",
		Long: `Runs the workflow "release" in the foreground. An agent writes the changelog and the notes; after
your yes, they are committed, tagged and pushed. If the repo has no workflow of that name, create
it with ` + "`sluice init --template release`" + `. Commit or stash your changes first:
a release contains only what is committed.`,
		Example: "sluice release\nsluice release --version v1.4.0 --remote origin\nsluice release --stub",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.CalledAs() == "push" {
				a.Note("`sluice push` is called `sluice release` now")
			}
			return startRelease(cmd.Context(), a, o)
		},
	}
	cmd.Flags().StringVar(&o.version, "version", "",
		"the `VERSION`, such as v1.2.3 (default: the agent chooses it from the changes)")
	cmd.Flags().StringVar(&o.remote, "remote", "", "the `REMOTE` to push to (default: where git would push the branch)")
	o.flags(cmd)
	cmd.Flags().StringArrayVar(&o.set, "set", nil,
		"a setting that overrides every layer: `KEY=VALUE` (if no daemon serves the repo)")
	return cmd
}

// startRelease runs the repo's workflow of releases, if there is one and it takes the version.
func startRelease(ctx context.Context, a *app, o releaseOptions) error {
	p, err := a.place(ctx)
	if err != nil {
		return err
	}
	files, err := specs.Find(p.Root)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(files, func(f string) bool { return strings.EqualFold(workflows.ID(f), releaseFlow) }) {
		return fault.Failed("create it with `sluice init --template release`; read it, commit it, then run "+
			"`sluice release`", "this repo has no workflow %q", releaseFlow)
	}
	o.workflow = releaseFlow
	o.before = func(ctx context.Context) error { return releasable(ctx, &a.Console, p, o.stub != "") }
	for _, v := range [][2]string{{"version", o.version}, {"remote", o.remote}} {
		if v[1] != "" {
			o.vars = append(o.vars, v[0]+"="+v[1])
		}
	}
	for _, v := range o.vars {
		if wanted, ok := strings.CutPrefix(v, "version="); ok {
			if err := versionFits(&a.Console, p, wanted); err != nil {
				return err
			}
		}
	}
	return runHere(ctx, a, p, o.order)
}

// versionFits checks the wanted version against the workflow's rule for the agent's, if any.
func versionFits(con *console.Console, p *workspace.Workspace, version string) error {
	if version == "" {
		return nil
	}
	file, err := workflows.File(p, releaseFlow)
	if err != nil {
		return err
	}
	spec, err := workflows.Load(con, file)
	if err != nil {
		return err
	}
	for _, st := range spec.Steps {
		if st.Answer == nil {
			continue
		}
		var schema struct {
			Properties struct {
				Version struct {
					Pattern string `json:"pattern"`
				} `json:"version"`
			} `json:"properties"`
		}
		if json.Unmarshal(st.Answer.Source, &schema) != nil || schema.Properties.Version.Pattern == "" {
			continue
		}
		// The run handles a pattern that Go cannot compile: it asks the agent for a version that
		// fits.
		if form, err := regexp.Compile(schema.Properties.Version.Pattern); err == nil && !form.MatchString(version) {
			return fault.Misused("as v1.2.3: "+cmp.Or(st.Answer.Path, layout.ShortPath(file))+" says so",
				"--version %s is not of the form %s", clean(version), form)
		}
	}
	return nil
}

// releasable refuses a release over uncommitted changes: the agent's work could not be told from
// them. A release by stand-ins is no release.
func releasable(ctx context.Context, con *console.Console, p *workspace.Workspace, stubbed bool) error {
	if stubbed {
		return nil
	}
	if p.Plain {
		return fault.Failed("", "%s is not a git checkout: there is nothing to push", p.Root)
	}
	repo, err := git.Open(ctx, p.Root)
	if err != nil {
		return err
	}
	defer repo.Close()
	changes, err := repo.Unclean(ctx, p.Root, false)
	if err != nil {
		con.Note("git cannot report whether everything is committed: %s", oneLine(err.Error()))
		return nil // the workflow checks it
	}
	var named []string
	for _, f := range changes.Files {
		if f != changelogFile && !strings.HasPrefix(f, auditDir) {
			named = append(named, clean(f))
		}
	}
	if len(named) == 0 {
		return nil
	}
	what := strings.Join(named, ", ")
	if more := len(named) - uncleanNamed; more > 0 {
		what = fmt.Sprintf("%s and %d more", strings.Join(named[:uncleanNamed], ", "), more)
	}
	return fault.Failed("commit it, or put it aside: `git stash`; then `sluice release`",
		"nothing was started: not committed: %s", what)
}
