//go:build linux

package main

import (
	"context"
	"fmt"
	"os"
	"time"
)

// The aims of rows 12 and 13.
const (
	aimStream      = 0.6 // of json.Unmarshal's speed on the same lines
	aimStreamsMiB  = 100
	streamingAgent = 32
)

// streamReader measures how fast an agent's events are read, beside the JSON in them alone.
func streamReader(ctx context.Context, b *bench) ([]figure, error) {
	var out []figure
	for _, format := range []string{"claude", "codex"} {
		rates, err := b.goBench(ctx, "./agents/program", "^BenchmarkStream$/"+format, "MB/s")
		if err != nil {
			return nil, err
		}
		by := map[string]float64{}
		for _, r := range rates {
			by[r.name] = r.rate
		}
		read, plain := by[format+"/reader"], by[format+"/unmarshal"]
		if read == 0 || plain == 0 {
			return nil, fmt.Errorf("BenchmarkStream has no reader and unmarshal of %s: %v", format, by)
		}
		out = append(out, figure{what: "events of " + format + " read", got: fmt.Sprintf("%.0f MB/s", read), beside: fmt.Sprintf("%.0f MB/s json.Unmarshal of the same lines", plain),
			ratio: read / plain, aim: fmt.Sprintf(">= %.1fx", aimStream), met: holds(read >= aimStream*plain)})
	}
	return out, nil
}

// streamScript prints what claude prints: an event of a kilobyte every few milliseconds.
const streamScript = `#!/bin/sh
echo '{"type":"system","subtype":"init","session_id":"s","model":"m"}'
text=$(head -c 1000 /dev/zero | tr '\0' x)
i=0
while [ $i -lt %d ]; do
  echo '{"type":"assistant","message":{"id":"m'$i'","content":[{"type":"text","text":"'$text'"}],"usage":{"input_tokens":10,"output_tokens":10}}}'
  i=$((i+1))
  [ $((i %% 10)) = 0 ] && sleep 0.05
done
echo '{"type":"result","subtype":"success","is_error":false,"result":"done","total_cost_usd":0.01,"usage":{"input_tokens":10,"output_tokens":10}}'
`

// streaming measures the daemon's memory while many agents print events.
func streaming(ctx context.Context, b *bench) (out []figure, err error) {
	agents := b.count(streamingAgent, 2)
	spec := "workflow: {id: talk}\nsteps:\n"
	for i := range agents {
		spec += fmt.Sprintf("  - {id: S%d, agent: {type: talker, prompt: talk, worktree: t%d/}, signal: {type: stdout_exit}, needs: [], next_step: DONE}\n", i, i)
	}
	s, err := b.newSite(ctx, b.work, "row13", map[string]string{"talk": spec}, "repo")
	if err != nil {
		return nil, err
	}
	defer s.close(&err)
	lines := b.count(2000, 20)
	script := s.at("stream.sh")
	if err := writeFile(script, fmt.Sprintf(streamScript, lines)); err != nil {
		return nil, err
	}
	if err := os.Chmod(script, 0o755); err != nil {
		return nil, err
	}
	conf := fmt.Sprintf("%smax_agents: %d\nmax_parallel: %d\nagents: {talker: {command: [%q], format: claude}}\nroles: {talker: {agent: talker, max_cost_usd: 100}}\n", settings, agents, agents, script)
	if err := writeFile(s.at("config/sluice/config.yaml"), conf); err != nil {
		return nil, err
	}
	if err := s.boot(ctx); err != nil {
		return nil, err
	}
	most, helpers := 0.0, 0.0
	watch, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for pause(watch, 100*time.Millisecond) == nil {
			var own, all account
			if own.add(s.cmd.Process.Pid) != nil {
				return
			}
			all, _ = accountOf(s.cmd.Process.Pid)
			most, helpers = max(most, float64(own.rssKiB)/1024), max(helpers, float64(all.anonKiB-own.anonKiB)/1024)
		}
	}()
	took, err := s.wholeRun(ctx, "talk")
	stop()
	<-done
	if err != nil {
		return nil, err
	}
	f := figure{what: fmt.Sprintf("the daemon's memory, %d agents streaming", agents), got: fmt.Sprintf("%.1f MiB", most), aim: fmt.Sprintf("<= %d MiB", aimStreamsMiB), met: holds(most <= aimStreamsMiB)}
	f.notes = []string{fmt.Sprintf("each printed %d events of 1 KB; all over in %s; their host processes' own memory (not files), together: %.1f MiB at most", lines, seconds(took), helpers)}
	return []figure{f}, nil
}
