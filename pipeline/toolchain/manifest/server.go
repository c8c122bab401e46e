package manifest

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"mlpromote.dev/mlpromote/pipeline/confined"
	"mlpromote.dev/mlpromote/pipeline/toolchain"
	"mlpromote.dev/mlpromote/pipeline/toolchain/caserun"
	"mlpromote.dev/mlpromote/pipeline/toolchain/driverproc"
	"mlpromote.dev/mlpromote/pipeline/toolchain/install"
	"mlpromote.dev/mlpromote/pipeline/toolchain/serving"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/strictyaml"
	"mlpromote.dev/mlpromote/validators"
)

// Server describes a model server: a program that mlpromote starts on a folder with the engine, or a URL.
type Server struct {
	Name        string            `yaml:"name,required" doc:"Name of the server, which reports and policies use"`
	Protocol    string            `yaml:"protocol,required" doc:"How it is asked: oip-rest, oip-grpc, tfserving or http"`
	Model       string            `yaml:"model" doc:"Name under which it has the model; not needed with the protocol http"`
	Program     string            `yaml:"program" doc:"Program of the server: an absolute path, or a name on PATH. With python and without a program, Python is the program"`
	Python      string            `yaml:"python" doc:"Python that the server runs on or starts, by path or by a name on PATH. Reports cover its packages"`
	Arguments   []string          `yaml:"arguments" doc:"Arguments of the program; {folder} is the folder that it serves, {http} and {grpc} are free ports, {model} is the name of the model"`
	Environment map[string]string `yaml:"environment" doc:"Variables of the server, beside those that every driver has"`
	Folder      string            `yaml:"folder" doc:"Folder that the program may see, with the program in it or below. Default: the folder of the program"`
	Inputs      []string          `yaml:"inputs" doc:"Files that the program consists of, as inputs of a compiler. Default: all files in the folder"`
	Files       string            `yaml:"files" doc:"Folder beside this file whose files become part of the folder that the server serves: its configuration"`
	Engine      string            `yaml:"engine" doc:"Folder in that folder where the files of the engine go, such as m/1. Default: the folder itself"`
	Ready       ReadyTime         `yaml:"ready" doc:"How long it may take until it is ready. Default: 60s, and 5s with url"`
	Version     string            `yaml:"version" doc:"Version of a server that does not tell it by its protocol, or not as numbers separated by dots"`
	URL         string            `yaml:"url" doc:"Address of a server that runs already, in place of program: http://HOST:PORT, or grpc://HOST:PORT. It proves answers, not which bytes gave them"`
	HTTP        *serving.Mapping  `yaml:"http" doc:"How inputs and outputs stand in JSON, for the protocol http"`

	folder string // of its file
	text   []byte
}

// ReadyTime is a time with its unit.
type ReadyTime time.Duration

// DecodeYAML reads a duration, such as 90s.
func (r *ReadyTime) DecodeYAML(n *strictyaml.Node) {
	v, err := time.ParseDuration(n.Text())
	if err != nil || v < time.Second || v > time.Hour {
		n.Problemf("ready %q: want 1s to 1h", n.Text())
	}
	*r = ReadyTime(v)
}

// The defaults of Ready: for a server that is started, and for one that runs already.
const (
	usualReady  = time.Minute
	remoteReady = 5 * time.Second
)

// LoadServer reads the manifest of a server. Errors: CodeInvalid with line and column; CodeNotFound if there is none.
func LoadServer(path string) (Server, error) {
	data, err := strictyaml.ReadFile(path)
	if err != nil {
		return Server{}, err
	}
	s := Server{folder: filepath.Dir(path), text: data}
	doc, err := strictyaml.Decode(path, data, &s)
	if err != nil {
		return Server{}, err
	}
	s.check(doc)
	return s, doc.Err()
}

func (s Server) check(doc *strictyaml.Document) {
	if !namePattern.MatchString(s.Name) {
		doc.At("name").Problemf("name %q: want lower-case letters and digits with inner '_' or '-'", s.Name)
	}
	for key, path := range map[string]string{"program": s.Program, "python": s.Python, "folder": s.Folder} {
		if strings.ContainsRune(path, '/') && !filepath.IsAbs(path) {
			doc.At(key).Problemf("%s %q: want an absolute path, or a name, which is looked up on PATH", key, path)
		}
	}
	for key, path := range map[string]string{"files": s.Files, "engine": s.Engine} {
		if path != "" && (!filepath.IsLocal(path) || filepath.Clean(path) != path) {
			doc.At(key).Problemf("%s %q: want a relative path without ..", key, path)
		}
	}
	for i, argument := range s.Arguments {
		for _, found := range placeholder.FindAllString(argument, -1) {
			if name := strings.Trim(found, "{}"); !slices.Contains(serving.Placeholders(), name) {
				doc.At("arguments", i).Problemf("unknown placeholder %s: want {%s}", found, strings.Join(serving.Placeholders(), "}, {"))
			}
		}
	}
	for i, pattern := range s.Inputs {
		checkInput(doc.At("inputs", i), pattern)
	}
	for name := range s.Environment {
		if err := checkServerVariable(name); err != nil {
			doc.At("environment", name).Problemf("%v", err)
		}
	}
	s.checkPlace(doc)
	s.checkProtocol(doc)
}

// checkProtocol wants what the protocol needs.
func (s Server) checkProtocol(doc *strictyaml.Document) {
	if s.Model == "" && s.Protocol != serving.ProtocolHTTP {
		doc.At("model").Problemf("model: want the name under which the server has the model")
	}
	if s.Program == "" && (s.Folder != "" || len(s.Inputs) > 0) {
		doc.At("folder").Problemf("folder, inputs: they belong to program; files is the folder that the server serves")
	}
	known := slices.Contains(serving.Protocols(), s.Protocol)
	if !known {
		doc.At("protocol").Problemf("protocol %q%s: want %s", s.Protocol, registry.Suggest(s.Protocol, serving.Protocols()), strings.Join(serving.Protocols(), ", "))
	}
	tells := s.Protocol == serving.ProtocolREST || s.Protocol == serving.ProtocolGRPC
	if s.Version == "" && known && !tells {
		doc.At("version").Problemf("version: the protocol %s does not tell the version of the server: write it here", s.Protocol)
	}
	if s.Version != "" && (artifact.Constraint{Exact: s.Version}).Validate() != nil {
		doc.At("version").Problemf("version %q: want numbers separated by dots", s.Version)
	}
	if (s.HTTP != nil) != (s.Protocol == serving.ProtocolHTTP) {
		doc.At("http").Problemf("http: it belongs to the protocol http, and to no other")
	} else if s.HTTP != nil {
		if err := s.HTTP.Check(); err != nil {
			doc.At("http").Problemf("http: %v", err)
		}
	}
}

// checkPlace wants a program or a URL.
func (s Server) checkPlace(doc *strictyaml.Document) {
	if s.URL == "" {
		if s.Program == "" && s.Python == "" {
			doc.At("program").Problemf("program: want the program of the server, or url for one that runs already")
		}
		return
	}
	at, err := url.Parse(s.URL)
	wants := []string{"http", "https"}
	if s.Protocol == serving.ProtocolGRPC {
		wants = []string{"grpc"}
	}
	switch {
	case err != nil || at.Host == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "" || !slices.Contains(wants, at.Scheme),
		s.Protocol == serving.ProtocolGRPC && at.Path != "":
		doc.At("url").Problemf("url %q: want %s://HOST:PORT, without a user or a query", registry.RedactURL(s.URL), wants[0])
	}
	if s.Program != "" || s.Python != "" || s.Files != "" || s.Engine != "" || len(s.Arguments) > 0 {
		doc.At("url").Problemf("url: a server that runs already has no program, python, arguments, files or engine")
	}
}

// checkServerVariable refuses variables that make the dynamic loader run other code than the program's files, which reports cover.
func checkServerVariable(name string) error {
	if name == "" || strings.ContainsAny(name, "=\x00") || slices.Contains([]string{"LD_PRELOAD", "LD_AUDIT"}, name) {
		return registry.Errorf(registry.CodeInvalid, "environment: %q is no variable for a server", name)
	}
	return nil
}

// OpenedServer is a server that was found on this machine, with the files of its configuration.
type OpenedServer struct {
	Server
	command []string
	reads   []string
	files   []toolchain.Input
	made    *made           // of its program; nil without one
	program registry.Digest // of its files, and of the packages of its Python
	options Options
}

// Open finds the program of a server and what it consists of. Errors: CodeUnavailable if it does not exist; CodeInvalid if its folders
// hold private files, links or too much.
func (s Server) Open(ctx context.Context, o Options) (*OpenedServer, error) {
	opened := &OpenedServer{Server: s, options: o}
	parts := map[string]any{}
	if s.Program != "" {
		path, err := lookUp(s.Program)
		if err != nil {
			return nil, registry.Lastingf(registry.CodeUnavailable, "server %s: %w", s.Name, err)
		}
		if opened.made, err = (consists{s.Folder, s.Inputs}).examine(path, o.Private); err != nil {
			return nil, registry.Errorf(registry.CodeOf(err), "server %s: %w", s.Name, err)
		}
		if parts["program"], err = opened.made.digest(); err != nil {
			return nil, err
		}
		opened.command, opened.reads = []string{path}, opened.made.shown
	}
	if s.Python != "" {
		record, err := install.Examine(ctx, s.Name, s.Python)
		if err != nil {
			return nil, err
		}
		parts["python"] = record.Lock
		opened.reads = append(opened.reads, record.Folders()...)
		if len(opened.command) == 0 {
			opened.command = []string{record.Interpreter()}
		}
	}
	if len(opened.command) > 0 {
		opened.command = append(opened.command, s.Arguments...)
	}
	var err error
	if opened.files, err = s.configuration(o.Private); err != nil {
		return nil, err
	}
	if opened.options.Executable == "" {
		if opened.options.Executable, err = os.Executable(); err != nil {
			return nil, registry.Lastingf(registry.CodeUnavailable, "find this program, to start it as a driver: %w", err)
		}
	}
	opened.program, err = registry.CanonicalDigest(parts)
	return opened, err
}

// configuration reads the files of the folder that the server gets.
func (s Server) configuration(private []string) ([]toolchain.Input, error) {
	if s.Files == "" {
		return nil, nil
	}
	folder, err := confined.New(filepath.Join(s.folder, s.Files), "the folder of the server's files", private...)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "server %s: files: %w", s.Name, err)
	}
	tree, err := folder.Tree(".", maxInputs)
	if err != nil {
		return nil, registry.Errorf(registry.CodeInvalid, "server %s: files: %w", s.Name, err)
	}
	var inputs []toolchain.Input
	for _, name := range tree {
		path := filepath.Join(folder.Path(), filepath.FromSlash(name))
		if info, err := os.Lstat(path); err != nil || info.Mode().Type() != 0 {
			return nil, errors.Join(err, registry.Errorf(registry.CodeInvalid, "server %s: files: %s is no regular file", s.Name, name))
		}
		in, err := toolchain.FileInput(serving.RoleServer, name, path)
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, in)
	}
	return inputs, nil
}

// Configuration is the digest of everything that decides how the server serves an engine, beside the engine and the files of its program: the files
// of its folder and its manifest.
func (o *OpenedServer) Configuration() (registry.Digest, error) {
	files := make(map[string]string)
	for _, in := range o.files {
		files[in.Name] = string(in.Digest)
	}
	return registry.CanonicalDigest(map[string]any{"files": files, "manifest": driverproc.CodeDigest(o.text)})
}

// Remote reports whether the server runs already, somewhere.
func (o *OpenedServer) Remote() bool { return o.URL != "" }

// config is how the child starts and asks the server for a model of an interface.
func (o *OpenedServer) config(iface validators.Interface) serving.Config {
	ready := usualReady
	if o.Remote() {
		ready = remoteReady
	}
	return serving.Config{
		Name: o.Name, Command: o.command, Environment: o.Environment, URL: o.URL, Engine: o.Engine, Model: o.Model, Protocol: o.Protocol,
		HTTP: o.HTTP, ReadySeconds: int(cmp.Or(time.Duration(o.Ready), ready).Seconds()),
		Inputs: slots(iface.Inputs), Outputs: slots(iface.Outputs),
	}
}

// slots are the values of an interface as servers have them.
func slots(values []validators.TensorInfo) []caserun.Slot {
	all := make([]caserun.Slot, 0, len(values))
	for _, v := range values {
		slot := caserun.Slot{Name: v.Name, DType: v.DType, Shape: []int64{}}
		for _, d := range v.Shape {
			size := d.Size
			if d.Symbol != "" {
				size = -1
			}
			slot.Shape = append(slot.Shape, size)
		}
		all = append(all, slot)
	}
	return all
}

// Probe starts the server with an engine and looks whether it serves that, and nothing else. engine are the files of one engine, the one that is
// loaded first; cases is a shard. Errors: CodeUnavailable if the server does not get ready.
func (o *OpenedServer) Probe(ctx context.Context, iface validators.Interface, engine []toolchain.Input, cases toolchain.Input, scratch string) (toolchain.Served, error) {
	driver := servedDriver{server: o, config: o.config(iface)}
	outcome, err := driver.Do(ctx, toolchain.Job{Verb: toolchain.VerbProbe, Inputs: append(slices.Clone(engine), cases)}, scratch)
	if err != nil {
		return toolchain.Served{}, err
	}
	var told serving.ProbeResult
	if err := json.Unmarshal(outcome.Result, &told); err != nil {
		return toolchain.Served{}, registry.Errorf(registry.CodeInternal, "server %s: result of probe: %w", o.Name, err)
	}
	version := o.version(told)
	if !hasNumbers(version) {
		return toolchain.Served{}, registry.WithHint(registry.Errorf(registry.CodeInvalid,
			"server %s: its version is %q: want numbers separated by dots, which policies compare", o.Name, registry.PlainText(version)),
			"`version` in its manifest takes the place of one in another form")
	}
	served := toolchain.Served{Fault: o.fault(told)}
	configuration, err := o.Configuration()
	if err != nil {
		return toolchain.Served{}, err
	}
	served.Evidence = evidence.Served{By: o.Name, Server: registry.PlainText(told.Server), Version: registry.PlainText(version), Protocol: o.Protocol, Model: o.Model,
		Configuration: evidence.NewDigestSet(configuration), RepeatsIDs: told.RepeatsIDs, URL: o.URL,
		BytesSeen: !o.Remote() && served.Fault == ""}
	for _, argument := range o.Arguments {
		served.Evidence.Arguments = append(served.Evidence.Arguments, registry.PlainText(argument))
	}
	library, err := registry.CanonicalDigest(map[string]string{"server": o.Name, "version": version})
	driver.config.RepeatsIDs = told.RepeatsIDs
	driver.identity = toolchain.Identity{Name: o.Name, Version: served.Evidence.Version, Lock: o.program, Adopted: true,
		LibraryDigest: library}
	if err == nil {
		driver.identity.Code, err = o.code()
	}
	served.Driver, served.Identity = driver, driver.identity
	return served, err
}

// Runner returns the driver that runs the engines of a toolchain through the server, with the version of the runtime that the server brings. No
// interface is known there: the server has to tell it. Errors: CodeInvalid if its protocol does not, or if it runs already.
func (o *OpenedServer) Runner(name, version string) (toolchain.Driver, error) {
	if !slices.Contains([]string{serving.ProtocolREST, serving.ProtocolGRPC}, o.Protocol) || o.Remote() {
		return nil, registry.Errorf(registry.CodeInvalid,
			"server %s: as the runtime of %s it needs a program, and a protocol that tells the inputs of a model, %s or %s", o.Name, name, serving.ProtocolREST, serving.ProtocolGRPC)
	}
	configuration, err := o.Configuration()
	if err != nil {
		return nil, err
	}
	lock, err := registry.CanonicalDigest(map[string]registry.Digest{"program": o.program, "configuration": configuration})
	if err != nil {
		return nil, err
	}
	library, err := registry.CanonicalDigest(map[string]string{"server": o.Name, "runtime": version})
	if err != nil {
		return nil, err
	}
	code, err := o.code()
	config := o.config(validators.Interface{})
	config.Inputs, config.Outputs, config.Runtime = nil, nil, true
	return servedDriver{server: o, config: config, identity: toolchain.Identity{Name: name, Version: version, Lock: lock, Adopted: true,
		Code: code, LibraryDigest: library}, name: name}, err
}

// code is the digest of what decides how the server is asked: its manifest, and our code.
func (o *OpenedServer) code() (registry.Digest, error) {
	return driverproc.GoCodeDigest(string(o.text), serving.Sources(), caserun.Sources())
}

// version is what reports have: the version that the server tells, or that of its manifest where policies could not compare the former.
func (o *OpenedServer) version(told serving.ProbeResult) string {
	if o.Version != "" && !hasNumbers(told.Version) {
		return o.Version
	}
	return told.Version
}

// hasNumbers reports whether policies can compare a version.
func hasNumbers(version string) bool { return (artifact.Constraint{Exact: version}).Validate() == nil }

// fault is what speaks against a server.
func (o *OpenedServer) fault(told serving.ProbeResult) string {
	switch {
	case told.Disagrees != "":
		return told.Disagrees
	case told.Blank:
		return "it answered although all bytes of the engine were zeros, so it serves other files than the engine's"
	case hasNumbers(told.Version) && o.Version != "" && told.Version != o.Version:
		return registry.PlainText("its version is " + told.Version + ", and its manifest has " + o.Version)
	}
	return ""
}

// servedDriver runs engines through a server.
type servedDriver struct {
	server   *OpenedServer
	config   serving.Config
	identity toolchain.Identity
	name     string // of the toolchain for which the server is the runtime; empty for others
}

func (d servedDriver) Identity(context.Context) (toolchain.Identity, error) { return d.identity, nil }

// Do runs engines. A server compiles nothing.
func (d servedDriver) Do(ctx context.Context, job toolchain.Job, outDir string) (toolchain.Outcome, error) {
	o := d.server
	job.Options = map[string]any{serving.OptionServer: d.config}
	if o.Remote() {
		return driverproc.InProcess(ctx, o.Name, job, outDir, func(ctx context.Context, r driverproc.Request) (any, error) {
			return serving.Handle(ctx, r, io.Discard)
		})
	}
	job.Inputs = append(slices.Clone(job.Inputs), o.files...)
	program := driverproc.Program{Name: o.Name, Path: o.options.Executable, Args: serving.Args(), Reads: o.reads, Loopback: true}
	outcome, err := driverproc.Do(ctx, program, o.options.Budget, job, outDir)
	if err == nil && job.Verb == toolchain.VerbProbe && d.name != "" { // without an engine no server runs, so the manifest tells
		outcome.Result, err = json.Marshal(toolchain.ProbeResult{Tool: map[string]string{d.name: d.identity.Version}})
	}
	if o.made != nil {
		if file := o.made.changed(); err == nil && file != "" {
			return toolchain.Outcome{}, registry.Errorf(registry.CodeUnavailable,
				"server %s: %s changed while it ran, so the report could not name it: verify again", o.Name, file)
		}
	}
	return outcome, err
}

// ServerFolder is the folder, in that of manifests, with the manifests of servers.
const ServerFolder = "servers"

// Servers lists the names of the servers in a folder of manifests.
func Servers(folder string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(folder, ServerFolder))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	names := make(map[string]bool)
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".yaml"); ok {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), err
}
