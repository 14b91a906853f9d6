package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"sluice/daemon"
	"sluice/engine"
	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/health"
	"sluice/internal/layout"
	"sluice/internal/mcp"
	"sluice/internal/prompt"
	"sluice/internal/text"
	"sluice/internal/workspace"
)

func nextCommand(a *app) *cobra.Command {
	var claim bool
	var run string
	cmd := &cobra.Command{
		Use:   "next",
		Short: "show the oldest step on offer",
		Long: `sluice does not launch steps with launch: interactive or subagent: it offers them. This prints the
oldest step that nobody has taken: its prompt, its folder, its inputs and outputs, and how to
report that it is done. --claim takes it.`,
		Example: "sluice next --claim\nsluice next --json",
		Args:    console.Between(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.withView(cmd.Context(), func(p *workspace.Workspace, v workspace.Viewer, served bool) error {
				offers, err := v.Offers(cmd.Context())
				if err != nil {
					return err
				}
				return nextOffer(cmd.Context(), &a.Console, p, v, offers, run, claim)
			})
		},
	}
	cmd.Flags().BoolVar(&claim, "claim", false, "take the step, so that nobody else does")
	cmd.Flags().StringVar(&run, "run", "", "only steps of this `RUN`")
	return a.JSONFlag(cmd)
}

func nextOffer(ctx context.Context, con *console.Console, p *workspace.Workspace, v workspace.Viewer,
	offers []daemon.Offer, run string, claim bool) error {
	offers = slices.DeleteFunc(offers,
		func(o daemon.Offer) bool { return run != "" && o.Run != run || claim && o.Claimed != "" })
	if len(offers) == 0 {
		if con.JSON {
			return con.Document(map[string]any{"offer": nil})
		}
		con.Print("Nothing is on offer.")
		return nil
	}
	slices.SortStableFunc(offers, func(x, y daemon.Offer) int {
		if (x.Claimed == "") != (y.Claimed == "") {
			return len(x.Claimed) - len(y.Claimed)
		}
		return x.Since.Compare(y.Since)
	})
	o := offers[0]
	if claim {
		s, ok := v.(workspace.Service)
		if !ok {
			_, err := p.NeedServing(ctx)
			return err
		}
		done, err := s.Do(ctx, engine.Claimed{Run: o.Run, Step: o.Step, N: o.Attempt}, "command")
		if err != nil {
			return err
		}
		if done.Ignored != "" {
			return fault.Failed("`sluice next --claim` again takes the next one", "not taken: %s", done.Ignored)
		}
	}
	work, err := workOf(ctx, p, o)
	if err != nil {
		return err
	}
	if con.JSON {
		return con.Document(map[string]any{"offer": o, "prompt": work.Prompt, "inputs": list(work.Inputs),
			"outputs": list(work.Outputs), "waiting": len(offers) - 1})
	}
	printOffer(con, o, work, claim)
	return nil
}

// list returns an empty list instead of nil: keys of documents are stable.
func list(names []string) []string { return append([]string{}, names...) }

func printOffer(con *console.Console, o daemon.Offer, work mcp.Work, claimed bool) {
	con.Print("%s", strings.TrimRight(text.Reveal(work.Prompt), "\n"))
	con.Title("\n%s of %s, attempt %d", text.Title(o.Step, o.Name), o.Run, o.Attempt)
	con.Field("work in", o.Worktree)
	con.Field("prompt", o.Prompt)
	if len(work.Inputs) > 0 {
		con.Field("read", clean(strings.Join(work.Inputs, " ")))
	}
	if len(work.Outputs) > 0 {
		con.Field("make", clean(strings.Join(work.Outputs, " ")))
	}
	switch o.SignalType {
	case engine.SignalCommit:
		con.Field("when done", "commit, with this in the message: "+clean(o.Marker))
	case engine.SignalPull:
		con.Field("when done", "open a pull request from its branch")
	default:
		con.Field("when done", "sluice signal "+o.Step+" --run "+o.Run+" -m \"what was done\"")
		con.Field("or write", o.Signal)
	}
	if !claimed && o.Claimed == "" {
		con.Field("", con.Paint(console.Dim, "sluice next --claim takes it"))
	}
}

// Limits of reading an offer's files.
const (
	maxOfferFile = 1 << 20
	layOutIn     = 5 * time.Second // an offer is known a moment before its folder is created
	layOutLook   = 50 * time.Millisecond
)

// workOf reads the files of an offer. offer.json is written last, so the others exist with it.
func workOf(ctx context.Context, p *workspace.Workspace, o daemon.Offer) (mcp.Work, error) {
	rel, err := filepath.Rel(p.Root, filepath.Dir(o.Prompt))
	if err != nil {
		return mcp.Work{}, err
	}
	var work mcp.Work
	var raw []byte
	for end := time.Now().Add(layOutIn); ; {
		raw, _, err = atomicfile.OpenRegular(p.Root, filepath.Join(rel, layout.OfferName), maxOfferFile)
		if !errors.Is(err, fs.ErrNotExist) || time.Now().After(end) {
			break
		}
		if !health.Wait(ctx, layOutLook) {
			return work, ctx.Err()
		}
	}
	if err == nil {
		err = json.Unmarshal(raw, &work)
	}
	if err != nil {
		return work, fault.New(fmt.Sprintf("see `sluice status %s`", o.Run), "%s of %s: its task cannot be read: %w",
			o.Step, o.Run, err)
	}
	raw, _, err = atomicfile.OpenRegular(p.Root, filepath.Join(rel, layout.PromptName), prompt.Max)
	if errors.Is(err, atomicfile.ErrTooLarge) {
		err = fmt.Errorf("somebody has changed it: a prompt has at most %d bytes", prompt.Max)
	}
	if err != nil {
		return work, fault.New(fmt.Sprintf("see `sluice status %s`", o.Run), "%s of %s: its prompt cannot be read: %w",
			o.Step, o.Run, err)
	}
	work.Prompt = string(raw)
	return work, nil
}
