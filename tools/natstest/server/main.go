// Command server is a NATS server for tests: the options are in its environment, and it ends with who started it.
package main

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	"github.com/nats-io/nats-server/v2/server"

	"sluice/tools/natstest"
)

func main() {
	if err := serve(os.Getenv(natstest.Environ)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func serve(text string) error {
	var o natstest.Options
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		return fmt.Errorf("%s: %w", natstest.Environ, err)
	}
	opts, err := options(o)
	if err != nil {
		return err
	}
	s, err := server.NewServer(opts)
	if err != nil {
		return err
	}
	s.ConfigureLogger()
	go func() { // ends with the test
		_, _ = os.Stdin.Read(make([]byte, 1))
		os.Exit(0)
	}()
	s.Start()
	s.WaitForShutdown()
	return nil
}

// options are what the server's own package calls those of a test.
func options(o natstest.Options) (*server.Options, error) {
	opts := &server.Options{ServerName: o.Name, Host: o.Place.Host, Port: o.Port, JetStream: !o.NoJetStream, StoreDir: o.Place.Dir,
		MaxPayload: o.Payload, SyncAlways: true, NoSigs: true, JetStreamMaxStore: o.Store, Username: o.User, Password: o.Pass,
		LogFile: filepath.Join(o.Place.Dir, "log")}
	if o.Config != "" {
		file := filepath.Join(o.Place.Dir, "config")
		if err := os.WriteFile(file, []byte(o.Config), 0o600); err != nil {
			return nil, err
		}
		if err := opts.ProcessConfigFile(file); err != nil {
			return nil, err
		}
	}
	if o.NKey != "" {
		opts.Nkeys = []*server.NkeyUser{{Nkey: o.NKey}}
	}
	if o.Cert != "" {
		pair, err := tls.LoadX509KeyPair(o.Cert, o.Key)
		if err != nil {
			return nil, err
		}
		opts.TLS, opts.TLSConfig, opts.TLSTimeout = true, &tls.Config{Certificates: []tls.Certificate{pair}}, 5
	}
	if len(o.Others) > 0 {
		opts.Cluster = server.ClusterOpts{Name: "test", Host: o.Place.Host, Port: o.Routes}
		for _, host := range o.Others {
			opts.Routes = append(opts.Routes, &url.URL{Scheme: "nats", Host: host})
		}
	}
	return opts, nil
}
