//go:build cgo

package main

import (
	"archive/zip"
	"bytes"
	"context"
	"database/sql" //nolint:depguard // to do what an intruder with the file could
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ocispec "github.com/opencontainers/image-spec/specs-go/v1"
	"github.com/rogpeppe/go-internal/testscript"
	"oras.land/oras-go/v2"

	"mlpromote.dev/mlpromote/cmd/internal/connect"
	"mlpromote.dev/mlpromote/cmd/internal/ui"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/program"
	"mlpromote.dev/mlpromote/cmd/mlpromote/internal/wiring"
	"mlpromote.dev/mlpromote/registry"
	"mlpromote.dev/mlpromote/registry/api"
	"mlpromote.dev/mlpromote/registry/artifact"
	"mlpromote.dev/mlpromote/registry/blob"
	"mlpromote.dev/mlpromote/registry/evidence"
	"mlpromote.dev/mlpromote/registry/history"
	"mlpromote.dev/mlpromote/registry/node"
	"mlpromote.dev/mlpromote/registry/oci"
	"mlpromote.dev/mlpromote/registry/sqlite"
	"mlpromote.dev/mlpromote/registry/storage"
)

// typeBundle is the media type of sigstore bundles.
const typeBundle = "application/vnd.dev.sigstore.bundle.v0.3+json"

// at runs f on the registry that the script's program works with.
func at(ts *testscript.TestScript, f func(ctx context.Context, i *wiring.Instance) error) {
	a := &program.App{
		UI: ui.NewPlain("mlpromote", io.Discard, io.Discard), Getenv: ts.Getenv, Version: version,
		Flags: connect.Flags{Data: ts.MkAbs(ts.Getenv("DATA")), Registry: ts.Getenv("MLPROMOTE_REGISTRY")},
	}
	ctx := context.Background()
	ts.Check(a.With(ctx, func(i *wiring.Instance) error { return f(ctx, i) }))
}

// cmdReport writes what a verifier could say: a report of parity about an engine of a
// release, made a moment ago on the machine of a node document, after the event of a hash.
func cmdReport(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 5, 6)
	machine, err := node.ParseFile(ts.MkAbs(args[4]))
	ts.Check(err)
	at(ts, func(ctx context.Context, i *wiring.Instance) error {
		r, err := releaseAt(ctx, i, args[1])
		if err != nil {
			return err
		}
		e, ok := r.Engine(registry.Digest(args[2]))
		if !ok {
			return fmt.Errorf("%s has no engine %s", args[1], args[2])
		}
		var seen evidence.DigestSet
		if len(args) > 5 {
			seen = evidence.NewDigestSet(registry.Digest(args[5]))
		}
		report, err := registry.CanonicalJSON(evidence.ParityReport{
			ReportHead: evidence.ReportHead{
				Verdict: evidence.Verdict(args[3]), StartedOn: time.Now().UTC(), FinishedOn: time.Now().UTC(), History: seen,
				Limits: evidence.NewDigestSet(r.Limits), Sources: evidence.NewDigestSet(r.Sources), Reference: evidence.NewDigestSet(e.Reference),
				Node: machine,
				Runtime: evidence.RuntimeUsed{Name: e.Toolchain.Name, Version: machine.Runtimes[e.Toolchain.Name],
					Library: evidence.NewDigestSet(digest.FromString("library"))},
			},
			Cases: evidence.CasesRun{Count: 360, Ran: 360, Origin: artifact.OriginRecorded},
			Rules: evidence.ReportRules, Outputs: map[string]evidence.OutputFigures{"logits": {DType: "float32", Kind: "scores"}}, Checks: evidence.Checks{
				{Trial: evidence.TrialCases, Baseline: evidence.BaselineGolden, Output: "logits", Figure: "maxError", Limit: new(evidence.Figure(0.002)), Verdict: evidence.VerdictPass, Cases: 360},
				{Trial: evidence.TrialCases, Baseline: evidence.BaselineGolden, Output: "logits", Figure: "snrDb", Limit: new(evidence.Figure(60)), AtLeast: true, Verdict: evidence.VerdictPass, Cases: 360},
				{Trial: evidence.TrialCases, Baseline: evidence.BaselineGolden, Output: "logits", Figure: "top1", Limit: new(evidence.Figure(0.98)), AtLeast: true, Verdict: evidence.VerdictPass, Cases: 360},
			},
		})
		return errors.Join(err, os.WriteFile(ts.MkAbs(args[0]), report, 0o644))
	})
}

func releaseAt(ctx context.Context, i *wiring.Instance, reference string) (artifact.Release, error) {
	ref, err := registry.ParseRef(reference)
	if err != nil {
		return artifact.Release{}, err
	}
	return i.Release(ctx, ref.Environment, ref.Model, ref.TagOrDigest())
}

// cmdSign signs a statement about a digest with a key file, whoever trusts that key.
func (j *jobs) cmdSign(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 5, 5)
	about := evidence.StatementSubject{Digest: evidence.NewDigestSet(registry.Digest(args[3]))}
	statement, err := evidence.NewStatement(args[2], json.RawMessage(ts.ReadFile(args[4])), about)
	ts.Check(err)
	bundle, err := j.key(ts, args[1]).Sign(context.Background(), statement)
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), bundle, 0o644))
}

// cmdAttach hands a bundle to the registry, as verify does, and sets VAR to its digest.
func cmdAttach(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 4, 4)
	at(ts, func(ctx context.Context, i *wiring.Instance) error {
		r, err := releaseAt(ctx, i, args[1])
		if err != nil {
			return err
		}
		ref, _ := registry.ParseRef(args[1]) // releaseAt has parsed it
		stored, err := i.Attach(ctx, api.Attachment{
			Environment: ref.Environment, Model: ref.Model, Release: r.Digest,
			Subject: registry.Digest(args[2]), Bundle: []byte(ts.ReadFile(args[3])),
		})
		ts.Setenv(args[0], string(stored))
		return err
	})
}

// cmdRefer does what anybody can who may push: with oras-go alone it makes a file a
// referrer of what a digest names, and sets VAR to the referrer's digest. Kinds are:
//
//	bundle  the file as evidence, as cosign attaches it
//	text    the file as something that is no evidence
//	absent  evidence whose bytes were never pushed
//	longer  evidence that says its bytes are more than they are
func cmdRefer(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 5, 5)
	ctx := context.Background()
	repo, done := pushTo(ts, args[1])
	defer done()
	subject, err := repo.Resolve(ctx, args[2])
	ts.Check(err)
	subject = ocispec.Descriptor{MediaType: subject.MediaType, Digest: subject.Digest, Size: subject.Size}
	data := []byte(ts.ReadFile(args[4]))
	layer := ocispec.Descriptor{MediaType: typeBundle, Digest: digest.FromBytes(data), Size: int64(len(data))}
	if args[3] == "text" {
		layer.MediaType = "text/plain"
	}
	if there, err := repo.Exists(ctx, layer); args[3] != "absent" && !there {
		ts.Check(err)
		ts.Check(repo.Push(ctx, layer, bytes.NewReader(data)))
	}
	if args[3] == "longer" {
		layer.Size++
	}
	pushed, err := oras.PackManifest(ctx, repo, oras.PackManifestVersion1_1, layer.MediaType,
		oras.PackManifestOptions{Subject: &subject, Layers: []ocispec.Descriptor{layer}})
	ts.Check(err)
	ts.Setenv(args[0], string(pushed.Digest))
}

// pushTo is [HOST/]REPOSITORY: on a registry, or where the script's data directory has it.
func pushTo(ts *testscript.TestScript, name string) (oci.Repository, func()) {
	if host, _, _ := strings.Cut(name, "/"); strings.Contains(host, ":") {
		return repositoryAt(ts, name), func() {}
	}
	repo, db := storeOf(ts, name)
	return repo, func() { ts.Check(db.Close()) }
}

// storeOf opens a repository past everything that guards it: by the files and the
// database of the data directory, or of the service that has it.
func storeOf(ts *testscript.TestScript, repository string) (oci.Repository, *sqlite.DB) {
	dir := ts.MkAbs(ts.Getenv("STORE"))
	db, err := sqlite.Open(context.Background(), filepath.Join(dir, "registry.db"))
	ts.Check(err)
	return oci.Local(blob.NewDir(dir), db, repository), db
}

// cmdForget takes the record of a manifest out of the database.
func cmdForget(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, 2)
	_, db := storeOf(ts, args[0])
	ts.Check(errors.Join(db.DeleteManifest(context.Background(), args[0], registry.Digest(args[1])), db.Close()))
}

// cmdRecall undoes forget: the bytes are still there.
func cmdRecall(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, 2)
	repo, db := storeOf(ts, args[0])
	raw := []byte(ts.ReadFile(blobPath(ts, args[1])))
	desc := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageManifest, Digest: digest.Digest(args[1]), Size: int64(len(raw))}
	ts.Check(errors.Join(repo.Push(context.Background(), desc, bytes.NewReader(raw)), db.Close()))
}

// cmdBend stores a copy of an index in which OLD is NEW, makes a tag name it, and sets
// VAR to its digest.
func cmdBend(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 6, 6)
	index := ts.ReadFile(blobPath(ts, args[2]))
	bent := []byte(strings.Replace(index, args[4], args[5], 1))
	if string(bent) == index {
		ts.Fatalf("%s does not hold %q: %s", args[2], args[4], index)
	}
	ctx := context.Background()
	repo, db := storeOf(ts, args[1])
	desc := ocispec.Descriptor{MediaType: ocispec.MediaTypeImageIndex, Digest: digest.FromBytes(bent), Size: int64(len(bent))}
	ts.Check(errors.Join(repo.Push(ctx, desc, bytes.NewReader(bent)), repo.Tag(ctx, desc, args[3]), db.Close()))
	ts.Setenv(args[0], string(desc.Digest))
}

// cmdNpz writes an npz file whose members, whatever they are called, are two images of
// the digits example.
func cmdNpz(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, 9)
	const header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 1, 8, 8), }\n"
	npy := binary.LittleEndian.AppendUint16([]byte("\x93NUMPY\x01\x00"), uint16(len(header)))
	npy = append(append(npy, header...), make([]byte, 4*2*8*8)...)
	var packed bytes.Buffer
	archive := zip.NewWriter(&packed)
	for _, name := range args[1:] {
		member, err := archive.Create(name)
		ts.Check(err)
		_, err = member.Write(npy)
		ts.Check(err)
	}
	ts.Check(archive.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), packed.Bytes(), 0o644))
}

// cmdCutHistory deletes the newest rows and makes another statement, as whoever can write to
// the file could.
func cmdCutHistory(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 2)
	db, err := sql.Open("sqlite", filepath.Join(ts.MkAbs(ts.Getenv("DATA")), "registry.db"))
	ts.Check(err)
	ctx := context.Background()
	for _, statement := range append([]string{
		"DROP TRIGGER IF EXISTS history_append_only_delete",
		"DELETE FROM history WHERE seq > (SELECT max(seq) FROM history) - " + args[0],
	}, args[1:]...) {
		_, err := db.ExecContext(ctx, statement)
		ts.Check(err)
	}
	ts.Check(db.Close())
}

// cmdForgedHold writes a hold with a reason that the service would refuse.
func cmdForgedHold(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 1, 1)
	at(ts, func(ctx context.Context, i *wiring.Instance) error {
		standing, err := i.Local.Catalog.ModelState(ctx, "prod", "vision/digits")
		if err != nil {
			return err
		}
		head := standing.Head
		_, err = i.Local.Catalog.Apply(ctx, storage.Change{
			Event: history.Event{Time: time.Now(), Kind: history.EventHoldSet, Environment: "prod", Model: "vision/digits",
				Version: head.Version, Release: head.Release, Previous: head.Release, Reason: args[0]},
			DecisionBasis: &history.DecisionBasis{ModelState: standing},
			Move:          &storage.HeadMove{Hold: args[0]},
		})
		return err
	})
}

func cmdLong(ts *testscript.TestScript, neg bool, args []string) {
	want(ts, neg, args, 2, 2)
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	ts.Setenv(args[0], strings.Repeat("x", n))
}
