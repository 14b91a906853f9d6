package web

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"time"
)

// stream sends the parts of a page, each as the HTML of one element, when they have changed.
func (s *Server) stream(w http.ResponseWriter, r *http.Request, load func(*http.Request) (view, error)) {
	who, _ := s.login(r)
	asked := r.Clone(context.WithoutCancel(r.Context())) // it outlives this browser's stream
	ctx, st := s.hub.join(r.Context(), who.Hash, r.URL.RequestURI(), s.pages.parts(asked, load))
	defer s.hub.leave(st)
	if r.ProtoMajor == 1 { // a stream that gives way gives its connection back
		w.Header().Set("Connection", "close")
	}
	select {
	case <-ctx.Done():
		return
	case <-st.page.ready:
	}
	now, err := s.hub.look(st)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	w.Header().Set("Content-Type", streams)
	rc := http.NewResponseController(w)
	sent := seen{parts: map[string]uint64{}}
	for first := true; ctx.Err() == nil; first = false {
		if _, ok := s.login(r); !ok {
			return
		}
		if err == nil {
			err = rc.SetWriteDeadline(time.Now().Add(writeIn))
		}
		if err == nil {
			err = send(w, now, &sent, first)
		}
		if err == nil {
			err = rc.Flush()
		}
		if err != nil {
			return // the browser asks again
		}
		select {
		case <-ctx.Done():
			return
		case <-st.wake:
		}
		now, err = s.hub.look(st)
	}
}

// seen is what a stream has sent: of each part its sum, and of what grows how far.
type seen struct {
	parts              map[string]uint64
	begun, first, next int
}

// send writes what differs from what was sent. The first message says that it is live.
func send(w io.Writer, now newest, sent *seen, first bool) error {
	if first {
		if _, err := io.WriteString(w, "retry: 1000\n: live\n\n"); err != nil {
			return err
		}
	}
	wrote, err := now.grown.send(w, sent)
	for _, parts := range []map[string]part{now.parts, now.grown.around} {
		for id, p := range parts {
			if was, ok := sent.parts[id]; err != nil || ok && was == p.sum {
				continue
			}
			sent.parts[id], wrote = p.sum, true
			_, err = w.Write(p.message)
		}
	}
	if err == nil && !wrote && !first {
		_, err = io.WriteString(w, ": tick\n\n") // notices a browser that has gone
	}
	return err
}

// message returns an element as a message of a stream.
func message(html []byte) []byte {
	out := make([]byte, 0, len(html)+len("data: \n")*(bytes.Count(html, []byte("\n"))+1)+1)
	for line := range bytes.Lines(html) {
		out = append(out, "data: "...)
		out = append(out, bytes.TrimRight(line, "\n")...)
		out = append(out, '\n')
	}
	return append(out, '\n')
}
