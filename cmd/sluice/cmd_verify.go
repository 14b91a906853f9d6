package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"sluice/internal/console"
	"sluice/internal/evidence"
	"sluice/internal/fault"
	"sluice/internal/git"
	"sluice/internal/workspace"
)

// verifyOptions are the options of `sluice verify`.
type verifyOptions struct {
	policy, from string
	files        []string
}

func evidenceCommand(a *app) *cobra.Command {
	var o verifyOptions
	cmd := a.JSONFlag(&cobra.Command{
		Use:   "verify COMMIT|A..B",
		Short: "check in CI that commits went through the gates that a policy requires",
		Long: `Needs only git and the notes of sluice attest (git fetch origin
refs/notes/sluice-gates:refs/notes/sluice-gates): no daemon, no state, no .workflow/ folder. Prints
one line with the cause for each commit. Read the policy from where the judged commits cannot write:
--policy-from origin/main reads FILE there.

Exit codes: 0 all pass; 10 a commit has no evidence; 11 the evidence is not what the policy
requires; 12 a signature is invalid or does not count; the highest of all commits. 1 or 2: no
result, because git failed or the call or the policy is wrong.`,
		Example: "sluice verify origin/main..HEAD --policy .workflow/gates.yaml --policy-from origin/main\nsluice verify " +
			"v1.2.0 --policy /etc/sluice/gates.yaml --json",
		Args: console.Between(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if o.policy == "" {
				return fault.Misused("name it: --policy .workflow/gates.yaml", "sluice verify: --policy is missing")
			}
			return verifyEvidence(cmd.Context(), a, args[0], o)
		},
	})
	cmd.Flags().StringVar(&o.policy, "policy", "", "the `FILE` that says which gates are wanted")
	cmd.Flags().StringVar(&o.from, "policy-from", "", "read the policy from this trusted `COMMIT`, such as origin/main")
	cmd.Flags().StringArrayVar(&o.files, "evidence", nil, "read statements from this `FILE` too; repeatable")
	return cmd
}

func verifyEvidence(ctx context.Context, a *app, what string, o verifyOptions) error {
	dir, err := workspace.StartDir(a.dir)
	if err != nil {
		return err
	}
	repo, err := git.Open(ctx, dir)
	if err != nil {
		return err
	}
	defer repo.Close()
	commits, err := evidence.Commits(ctx, repo, what)
	if err != nil {
		return err
	}
	policy, err := evidence.ReadPolicy(ctx, repo, o.policy, o.from, commits)
	if err != nil {
		return policyFault(&a.Console, err)
	}
	v := evidence.Verifier{Repo: repo, Policy: policy, Files: o.files}
	answers, err := v.Verify(ctx, commits)
	if err != nil {
		return err
	}
	return printAnswers(&a.Console, policy, answers)
}

// policyFault reports all faults of a policy but the last, which it returns.
func policyFault(con *console.Console, err error) error {
	all, joined := err.(interface{ Unwrap() []error })
	if !joined {
		return err
	}
	list := all.Unwrap()
	for _, one := range list[:len(list)-1] {
		if f, ok := errors.AsType[*fault.Error](one); ok {
			con.Report(f)
		}
	}
	return list[len(list)-1]
}

func printAnswers(con *console.Console, policy *evidence.Policy, answers []evidence.Answer) error {
	code := evidence.Code(answers)
	if con.JSON {
		err := con.Document(map[string]any{"ok": code == evidence.CodePass, "code": code, "policy": policy.File,
			"commits": answers})
		if err != nil {
			return err
		}
	} else {
		t := &console.Table{Columns: []console.Column{{}, {}, {Fit: console.Wrapped}}}
		for _, c := range answers {
			word, style := "ok", console.Green
			if !c.OK {
				word, style = fmt.Sprintf("no %d", c.Code), console.Red
			}
			t.Row(console.Styled(word, style), console.Styled(fmt.Sprintf("%.12s", c.Commit), console.Plain),
				console.Styled(clean(c.Subject)+": "+c.Why, console.Plain))
		}
		con.PrintTable(t)
		if len(answers) == 0 {
			con.Note("there is no commit in the range")
		}
	}
	if code != evidence.CodePass {
		return fault.Exit(code)
	}
	return nil
}
