package play

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"sluice/internal/atomicfile"
	"sluice/internal/console"
	"sluice/internal/fault"
	"sluice/internal/job"
	"sluice/internal/stub"
	"sluice/internal/text"
)

// Part does what the part says, in its order.
func Part(ctx context.Context, con *console.Console, p stub.Part) error {
	if p.Fail == stub.Silence {
		<-ctx.Done()
		return context.Canceled
	}
	select {
	case <-ctx.Done():
		return context.Canceled
	case <-time.After(time.Duration(p.Takes)):
	}
	if p.Fail == stub.Limit {
		return limit(con, time.Duration(p.ResetIn))
	}
	for _, f := range p.Write {
		if err := write(f); err != nil {
			return fault.Failed("fix what the stubs have it write", "%s", text.Message(err.Error()))
		}
	}
	if p.Fail == stub.Crash {
		con.Print("%s", p.Say)
		return crash()
	}
	if p.Commit != "" {
		if err := commit(ctx, p.Commit); err != nil {
			return err
		}
	}
	if err := answer(con, p); err != nil {
		return err
	}
	if err := signal(con, p); err != nil {
		return err
	}
	if p.Exit != 0 {
		return fault.Exit(p.Exit)
	}
	return nil
}

// write writes a file; one that nobody scripted is not written over.
func write(f stub.File) error {
	if _, err := os.Lstat(f.Path); err == nil && f.New {
		return nil
	}
	return writeWhole(f.Path, []byte(f.Text))
}

// writeWhole writes a file, and makes its folder.
func writeWhole(name string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	return atomicfile.Write(name, data, 0o644)
}

// answer says the stand-in's last words, the answer as a block of JSON behind them.
func answer(con *console.Console, p stub.Part) error {
	con.Print("%s", p.Say)
	if p.Answer == nil {
		return nil
	}
	if !p.Keep {
		con.Print("\n```json\n%s\n```", p.Answer)
		return nil
	}
	file, m := con.Getenv("SLUICE_ANSWER"), map[string]any{}
	if file == "" || json.Unmarshal(p.Answer, &m) != nil {
		return nil
	}
	m["token"] = con.Getenv("SLUICE_TOKEN")
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return writeWhole(file, raw)
}

// signal writes the sentinel, where the step has one.
func signal(con *console.Console, p stub.Part) error {
	file := con.Getenv("SLUICE_SIGNAL")
	if file == "" || p.Signal == stub.NoSignal || p.Signal == "" {
		return nil
	}
	m := map[string]any{"step": con.Getenv("SLUICE_STEP"), "status": p.Signal, "summary": p.Summary,
		"run": con.Getenv("SLUICE_RUN"), "token": con.Getenv("SLUICE_TOKEN")}
	if p.Ask != "" {
		m["question"] = p.Ask
	}
	raw, err := json.Marshal(m)
	if err != nil {
		return err
	}
	return writeWhole(file, raw)
}

// commit makes the empty commit that a step with signal git_commit waits for.
func commit(ctx context.Context, message string) error {
	cmd := exec.CommandContext(ctx, "git", "-c", "user.name="+job.StandIn, "-c", "user.email=stub@example.org", "-c",
		"commit.gpgsign=false",
		"commit", "--quiet", "--allow-empty", "--no-verify", "-m", message)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fault.Failed("`sluice doctor` looks at git", "git commit: %s %s", err, text.Line(string(out)))
	}
	return nil
}

// limit says, as an agent's program does, that the usage limit is reached.
func limit(con *console.Console, in time.Duration) error {
	words := "API Error: Request rejected (429): stub: the usage limit is reached"
	if in > 0 {
		words += fmt.Sprintf(", try again in %s", in)
	}
	for _, event := range []map[string]any{
		{"type": "system", "subtype": "init", "session_id": "stub"},
		{"type": "result", "subtype": "success", "is_error": true, "api_error_status": 429, "result": words,
			"session_id": "stub"},
	} {
		raw, err := json.Marshal(event)
		if err != nil {
			return err
		}
		con.Print("%s", raw)
	}
	return fault.Exit(1)
}

// crash has the system kill this process.
func crash() error {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Signal(syscall.SIGKILL)
	}
	if err != nil {
		return err
	}
	select {} // until it comes
}
