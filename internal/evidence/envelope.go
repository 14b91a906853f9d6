package evidence

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"sluice/internal/approval"
)

// payloadType is what an envelope says of an in-toto statement.
const payloadType = "application/vnd.in-toto+json"

// Limits of envelopes.
const (
	maxEnvelope   = maxStatement*4/3 + 64<<10
	maxInNote     = 20 // statements in one note
	maxSignatures = 10
)

// Envelope is a signed statement, by https://github.com/secure-systems-lab/dsse (v1.0.2).
type Envelope struct {
	PayloadType string      `json:"payloadType"`
	Payload     []byte      `json:"payload"` // in base64
	Signatures  []Signature `json:"signatures"`
}

// Signature is one over the payload and its type. Sig is the content of an OpenSSH signature, or an
// ed25519 signature without a frame: see approval.VerifyDetached.
type Signature struct {
	KeyID string `json:"keyid"` // the key's fingerprint, "SHA256:…"
	Sig   []byte `json:"sig"`   // in base64
}

// pae is what is signed: DSSE's pre-authentication encoding.
func pae(kind string, payload []byte) []byte {
	return fmt.Appendf(nil, "DSSEv1 %d %s %d %s", len(kind), kind, len(payload), payload)
}

// Sign signs a message, and returns the signature with the fingerprint of its key.
type Sign func(message []byte) (sig []byte, key string, err error)

// Seal signs a statement. The envelope is one line of JSON.
func Seal(s *Statement, sign Sign) ([]byte, error) {
	if err := s.check(); err != nil {
		return nil, err
	}
	payload, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	if len(payload) > maxStatement {
		return nil, fmt.Errorf("the statement has %d bytes, more than %d", len(payload), maxStatement)
	}
	sig, key, err := sign(pae(payloadType, payload))
	if err != nil {
		return nil, err
	}
	line, err := json.Marshal(Envelope{PayloadType: payloadType, Payload: payload,
		Signatures: []Signature{{KeyID: key, Sig: sig}}})
	return append(line, '\n'), err
}

// split takes a note or a file apart: an envelope a line, spelled as Seal spells it, so that each
// byte of it counts.
func split(note []byte) ([]*Envelope, error) {
	var out []*Envelope
	for line := range bytes.Lines(note) {
		if line = bytes.TrimSpace(line); len(line) == 0 {
			continue
		}
		if len(out) == maxInNote {
			return nil, fmt.Errorf("more than %d statements", maxInNote)
		}
		if len(line) > maxEnvelope {
			return nil, fmt.Errorf("not an envelope: more than %d bytes", maxEnvelope)
		}
		var e Envelope
		if err := json.Unmarshal(line, &e); err != nil {
			return nil, fmt.Errorf("not an envelope: %w", err)
		}
		again, err := json.Marshal(e)
		switch {
		case err != nil || !bytes.Equal(again, line):
			return nil, errors.New("not an envelope as `sluice attest` writes it")
		case e.PayloadType != payloadType:
			return nil, errors.New("an envelope of another kind: payloadType is not " + payloadType)
		case len(e.Signatures) == 0:
			return nil, errors.New("an envelope that nobody signed")
		case len(e.Signatures) > maxSignatures:
			return nil, fmt.Errorf("an envelope with more than %d signatures", maxSignatures)
		}
		out = append(out, &e)
	}
	return out, nil
}

// open returns the statement of an envelope and who signed it, by the keys of the list. Nothing of
// the payload is read before a signature holds.
func (e *Envelope) open(list approval.List) (*Statement, approval.Signer, error) {
	var first error
	for _, sig := range e.Signatures {
		by, err := list.VerifyDetached(pae(e.PayloadType, e.Payload), sig.Sig, sig.KeyID, approval.EvidenceNamespace)
		if err != nil {
			if first == nil {
				first = err
			}
			continue
		}
		s, err := ParseStatement(e.Payload)
		return s, by, err
	}
	return nil, approval.Signer{}, first
}
