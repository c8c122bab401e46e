//go:build cgo

package main

import (
	"errors"
	"os"
	"path/filepath"

	"github.com/rogpeppe/go-internal/testscript"

	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/programtest"
)

// onService starts a service that has the data directory of a script to itself. The client
// has keys and the default trust in a folder of its own.
func onService(env *testscript.Env, program string) error {
	s := &programtest.Service{Program: program, Dir: filepath.Join(env.WorkDir, "served"), Client: filepath.Join(env.WorkDir, "client"), Env: env.Vars}
	if err := s.Start(); err != nil {
		return err
	}
	env.Defer(func() {
		if err := s.Stop(); err != nil {
			env.T().Fatal(err)
		}
	})
	env.Values[servedKey{}] = s
	announce(s, env.Setenv)
	return s.ShareKeys()
}

// servedKey is the key of the service that a script has from its beginning.
type servedKey struct{}

// announce tells a script where the service is, and where things are.
func announce(s *programtest.Service, set func(key, value string)) {
	set("MLPROMOTE_REGISTRY", s.URL)
	set("MLPROMOTE_DATA", s.Client)
	set("HOST", s.Host()+"/")
	set("DATA", s.Client)
	set("STORE", s.Dir)
}

// take serves what is in a data directory, which is moved. What the program remembers of
// its last build stays.
func take(s *programtest.Service, data string) error {
	if err := s.Stop(); err != nil {
		return err
	}
	last, err := os.ReadFile(filepath.Join(data, "last-build"))
	if err != nil {
		return err
	}
	err = errors.Join(os.RemoveAll(s.Dir), os.RemoveAll(s.Client), os.Rename(data, s.Dir),
		os.Mkdir(data, 0o700), os.WriteFile(filepath.Join(data, "last-build"), last, 0o600), s.ShareKeys())
	if err != nil {
		return err
	}
	return s.Start()
}

// services are those that a script has started, by data directory.
type services map[string]*programtest.Service

// cmdServe serves a data directory: serve VAR DIR.
func (j *jobs) cmdServe(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, 10)
	s := &programtest.Service{Program: j.program, Dir: ts.MkAbs(args[1]), Env: programtest.Environment(ts.Getenv("WORK"), j.cache), Flags: args[2:]}
	ts.Check(s.Start())
	ts.Defer(s.Kill) // where the script did not stop it
	ts.Setenv(args[0], s.URL)
	ts.Setenv(args[0]+"_HOST", s.Host())
	ts.Value(servicesKey{}).(services)[s.Dir] = s
}

// servicesKey is the key of a script's services.
type servicesKey struct{}

// cmdStopService asks the service of a data directory to stop: stop-service DIR.
func cmdStopService(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	ts.Check(serviceOf(ts, args[0]).Stop())
}

// cmdKillService gives the service of a data directory no time: kill-service DIR.
func cmdKillService(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	serviceOf(ts, args[0]).Kill()
}

func serviceOf(ts *testscript.TestScript, dir string) *programtest.Service {
	s, ok := ts.Value(servicesKey{}).(services)[ts.MkAbs(dir)]
	if !ok {
		ts.Fatalf("%s is not served", dir)
	}
	return s
}
