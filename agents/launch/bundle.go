package launch

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"sluice/agents"
	"sluice/internal/atomicfile"
	"sluice/internal/health"
	"sluice/internal/layout"
)

// carried are the files of a launch that a worker returns, from its folder, with their limits.
func carried() map[string]int64 {
	return map[string]int64{"stdout": MaxStream, "stderr": MaxStream, "network.log": agents.DefaultMaxOutput,
		layout.AnswerName: longestAnswer, layout.OwnDir + "/" + layout.AnswerName: longestAnswer}
}

// PackOutput writes the output and the answer of an ended launch, as far as they can be read.
func PackOutput(l layout.Layout, rel string, to io.Writer) error {
	out := tar.NewWriter(to)
	dir := l.Path(rel)
	for name, most := range carried() {
		f, st, err := atomicfile.Open(dir, filepath.FromSlash(name))
		if err != nil && health.Passing(err) {
			return err
		}
		if err != nil {
			continue // there is none, or the agent has left something else there
		}
		n := min(st.Size, most+1) // one more byte has it refused as too long, not taken in part
		if err = out.WriteHeader(&tar.Header{Name: name, Size: n, Mode: 0o600}); err == nil {
			_, err = io.CopyN(out, f, n)
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return err
		}
	}
	return out.Close()
}

// unpackOutput writes the files of a launch that a worker has returned. Others than carried, links
// and files that are too long are left out.
func unpackOutput(l layout.Layout, rel string, from io.Reader) error {
	in := tar.NewReader(from)
	left := carried()
	for {
		h, err := in.Next()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("the output of a worker's launch: %w", err)
		}
		most, ok := left[h.Name]
		if !ok || h.Typeflag != tar.TypeReg {
			continue
		}
		delete(left, h.Name)
		data, err := io.ReadAll(io.LimitReader(in, most+1))
		if err != nil {
			return fmt.Errorf("the output of a worker's launch: %w", err)
		}
		if err := l.WriteFile(rel+"/"+h.Name, data); err != nil {
			return err
		}
	}
}
