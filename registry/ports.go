package registry

import (
	"context"
	"io"
	"iter"
	"os"
	"time"
)

// Blobs is content-addressed storage of bytes, shared by all repositories.
// Implementations are safe for concurrent use, also by several processes. A digest that
// is malformed, or of another algorithm than sha256 and sha512, is CodeInvalid.
type Blobs interface {
	// Put stores the bytes of r under d, durably before it returns. Storing what is
	// there already reads r no further than it must and succeeds. Errors:
	// CodeDigest when the bytes are not those of d and size (nothing is stored).
	Put(ctx context.Context, d Digest, size int64, r io.Reader) error
	// Open gives the bytes of d and their number. It does not hash them: who relies on
	// them does. Errors: CodeNotFound. The caller closes.
	Open(ctx context.Context, d Digest) (Blob, int64, error)
	// Delete removes d. Deleting what is not there succeeds.
	Delete(ctx context.Context, d Digest) error
	// Digests lists every digest held, in no order. An error ends the sequence.
	Digests(ctx context.Context) iter.Seq2[Digest, error]
}

// Blob is open content.
type Blob interface {
	io.ReadCloser
	io.ReaderAt
	io.Seeker
}

// Manifest is a record of a manifest or index in a repository. Its bytes are in Blobs.
type Manifest struct {
	Digest    Digest
	MediaType string
	Size      int64
	// Pusher is the principal that first pushed it to the registry endpoint. It is empty for
	// manifests that the service made.
	Pusher  string
	Derived Derived
}

// Derived is what a Manifest record repeats from the manifest's bytes so that it can
// be queried. Reindex makes it anew.
type Derived struct {
	ArtifactType string // artifactType, else config.mediaType for a manifest
	Subject      Digest // what it refers to; empty for most
	Annotations  map[string]string
}

// Members is the blobs that belong to each repository: a blob can be read only
// through a repository that it belongs to. Asking and adding rescinds ([Stock]).
type Members interface {
	// AddBlob makes d, of size bytes, belong to the repository. Adding twice succeeds.
	AddBlob(ctx context.Context, repository string, d Digest, size int64) error
	// Blob gives the size of a blob of the repository. Errors: CodeNotFound.
	Blob(ctx context.Context, repository string, d Digest) (int64, error)
}

// Manifests is the manifests of each repository and who refers to whom. Asking for one
// by its digest and putting it rescinds ([Stock]).
type Manifests interface {
	// PutManifest records m, and makes tags name it, all or nothing. Recording again
	// replaces what is derived, and that alone.
	PutManifest(ctx context.Context, repository string, m Manifest, tags ...string) error
	// Manifest gives the record of d. Errors: CodeNotFound.
	Manifest(ctx context.Context, repository string, d Digest) (Manifest, error)
	// Referrers lists a page of manifests whose subject is d, in order of digest, after a
	// digest ("" for the first page). A page ends at [ReferrerPage] bytes of annotations and
	// has at least one manifest; an empty page is the end. An empty artifactType means all.
	Referrers(ctx context.Context, repository string, d Digest, artifactType string, after Digest) ([]Manifest, error)
	// AllManifests lists every record of every repository, by repository and digest.
	AllManifests(ctx context.Context) iter.Seq2[RepositoryManifest, error]
}

// ReferrerCounts counts referrers by the principal that pushed them.
type ReferrerCounts interface {
	// CountReferrers counts the manifests whose subject is d that a principal pushed first.
	CountReferrers(ctx context.Context, repository string, d Digest, pusher string) (int, error)
}

// ReferrerPage is about how many bytes of annotations a page of referrers has. It bounds pages
// because anybody who may push can make annotations long.
const ReferrerPage = 1 << 20

// AllReferrers lists the manifests whose subject is d, by digest, page by page. An error ends
// the sequence.
func AllReferrers(ctx context.Context, m Manifests, repository string, d Digest, artifactType string) iter.Seq2[Manifest, error] {
	return func(yield func(Manifest, error) bool) {
		for after := Digest(""); ; {
			page, err := m.Referrers(ctx, repository, d, artifactType, after)
			if err != nil {
				yield(Manifest{}, err)
				return
			}
			if len(page) == 0 {
				return
			}
			for _, manifest := range page {
				if !yield(manifest, nil) {
					return
				}
			}
			after = page[len(page)-1].Digest
		}
	}
}

// RepositoryManifest is a manifest with the repository that holds it.
type RepositoryManifest struct {
	Repository string
	Manifest   Manifest
}

// Tags is the tags of each repository.
type Tags interface {
	// Tag gives the digest that a tag names. Errors: CodeNotFound.
	Tag(ctx context.Context, repository, tag string) (Digest, error)
	// SetTag makes a tag name a digest whose manifest is recorded. Errors: CodeNotFound
	// when it is not.
	SetTag(ctx context.Context, repository, tag string, d Digest) error
	// ListTags lists up to limit tags after a tag (exclusive, "" for the first), in
	// byte order. A limit of 0 means all.
	ListTags(ctx context.Context, repository, after string, limit int) ([]string, error)
}

// Deleter takes names away. Bytes stay until they are collected.
type Deleter interface {
	// DeleteManifest removes the record of d, its tags and what is derived from it.
	// Errors: CodeNotFound.
	DeleteManifest(ctx context.Context, repository string, d Digest) error
	// DeleteTag removes a tag alone. Errors: CodeNotFound.
	DeleteTag(ctx context.Context, repository, tag string) error
	// RemoveBlob makes d no longer belong to the repository. Errors: CodeNotFound.
	RemoveBlob(ctx context.Context, repository string, d Digest) error
}

// Refs is the names of things: memberships, manifests and tags. Implementations are
// safe for concurrent use, also by several processes. Writes are durable on return.
type Refs interface {
	Members
	Manifests
	Tags
}

// Catalog is heads and history. It holds facts and decides nothing.
// Implementations are safe for concurrent use, also by several processes.
type Catalog interface {
	// Head gives the head of a model in an environment. Errors: CodeNotFound.
	Head(ctx context.Context, environment, model string) (Head, error)
	// Heads lists heads by environment and model. Empty arguments mean all.
	Heads(ctx context.Context, environment, model string) ([]Head, error)
	// Standing returns the state of a model in an environment at one instant. An unknown
	// model or environment is not an error.
	Standing(ctx context.Context, environment, model string) (Standing, error)
	// Apply makes a change in one transaction, durable on return, and returns the event as it
	// was chained. A move to the release that the head has keeps the head's time. Events that
	// restrict are counted. Errors: CodeInvalid for a move without a release or a ground;
	// CodeConflict, without any change, if the ground has moved ([GroundMoved]), a needed
	// manifest is not recorded, or a tag that must not move names another digest.
	Apply(ctx context.Context, c Change) (Event, error)
	// History lists events in order of sequence.
	History(ctx context.Context, q HistoryQuery) iter.Seq2[Event, error]
}

// Latest says whether anything has happened since somebody looked.
type Latest interface {
	// LastEvent gives the hash of the newest event of a model in an environment, or "" where
	// there is none. It costs one look by a key.
	LastEvent(ctx context.Context, environment, model string) (Digest, error)
}

// Listing pages through names by key, so that a page costs the same wherever it begins.
// A limit is at least 1. Names are in byte order.
type Listing interface {
	// ModelPage lists the heads of up to limit models behind a model (exclusive, "" for the
	// first), by model and environment. An empty environment means all.
	ModelPage(ctx context.Context, environment, after string, limit int) ([]Head, error)
	// TagPage lists up to limit tags behind a tag that name manifests of an artifact type.
	TagPage(ctx context.Context, repository, artifactType, after string, limit int) ([]Tagged, error)
}

// Tagged is a tag and what it names.
type Tagged struct {
	Tag    string
	Digest Digest
}

// Intents remembers promotions that were begun and not finished.
type Intents interface {
	// Begin records an intent, which begins now by the clock of the catalog. It replaces an
	// earlier one of the same destination and model.
	Begin(ctx context.Context, i Intent) error
	// Pending lists the intents that nothing has ended.
	Pending(ctx context.Context) ([]Intent, error)
	// End forgets the intent of a destination and model if it is for that release:
	// for what had to be done after the change that moved the head. Ending what is not
	// there succeeds.
	End(ctx context.Context, environment, model string, release Digest) error
	// Abandon deletes an intent that [Pending] returned, unless it has begun again since or
	// its head is at its release. It succeeds if there is no such intent.
	Abandon(ctx context.Context, i Intent) error
}

// Change is one transaction of the catalog.
type Change struct {
	Event  Event     // its place in the chain is given by Apply
	Ground *Ground   // the state that the change rests on; nil for events that move no head
	Move   *HeadMove // nil: the event moves no head
	Tags   []TagMove
	// Needs are manifests that must be recorded when the change is made, so that none was
	// collected since it was read. They are rescinded ([Stock]).
	Needs []ManifestPlace
	// EndIntent removes the intent of the event's environment and model, if it is for the
	// event's release.
	EndIntent bool
	// Configure replaces the agreed configuration; nil: it stays. Apply returns CodeConflict
	// if the agreed one is not the expected one.
	Configure *ConfigurationMove
}

// HeadMove moves the head of the event's environment and model to Event.Release, if the
// ground of the change has not moved.
type HeadMove struct {
	Hold string // the hold of the new head; empty: none
}

// ManifestPlace is a manifest in a repository.
type ManifestPlace struct {
	Repository string
	Digest     Digest
}

// TagMove sets a tag in the change's transaction.
type TagMove struct {
	Repository string
	Tag        string
	Digest     Digest
	Immutable  bool // a conflict if the tag names another digest
}

// HistoryQuery selects events. Zero fields select all.
type HistoryQuery struct {
	Environment string
	Model       string
	Kind        EventKind
	Subject     Digest
	Hash        Digest // of the event itself: at most one has it
	After       int64  // sequence number, exclusive
	Before      int64  // sequence number, exclusive; 0: no bound
	Descending  bool   // newest first
	Limit       int    // how many events at most; 0: all
}

// EvidenceStore keeps evidence beside what it is about.
type EvidenceStore interface {
	// Evidence returns the bundles that are attached to a subject. Manifests with the same
	// document follow one another, the smallest first, and the document is read once.
	// Referrers that are not bundles are skipped. The bytes of bundles that are being read
	// are bounded; a bundle counts until the next one is read, so do not read other evidence
	// inside the loop. An error ends the sequence: CodeDigest if stored bytes do not match
	// their digest.
	Evidence(ctx context.Context, repository string, subject Digest) iter.Seq2[Bundle, error]
	// PutEvidence stores one bundle for every subject: one blob, and one referrer manifest
	// each, whose digests it returns in the same order.
	PutEvidence(ctx context.Context, repository string, b Bundle, subjects []Subject) ([]Digest, error)
	// Bundle reads one piece of evidence by the digest of its manifest. Errors:
	// CodeNotFound, also for a manifest that is no evidence; CodeDigest.
	Bundle(ctx context.Context, repository string, d Digest) (Bundle, error)
}

// Content is releases and their evidence as a repository holds them. Reading checks
// every digest; CodeDigest means that stored bytes were changed.
type Content interface {
	EvidenceStore
	// Release reads the release that a tag or digest names. The index must repeat what
	// each engine's manifest says. Errors: CodeNotFound; CodeInvalid when it is no
	// release; CodeTrust when index and manifest differ; CodeDigest.
	Release(ctx context.Context, repository, tagOrDigest string) (Release, error)
	// Engine reads one engine by the digest of its manifest. Errors: CodeNotFound, also for
	// a manifest that is no engine; CodeDigest.
	Engine(ctx context.Context, repository string, d Digest) (Engine, error)
	// Rehash reads every blob and manifest of the release and checks its digest.
	Rehash(ctx context.Context, repository string, r Release) error
	// Copy makes the release and the evidence (bundle manifests) present in the
	// destination, without moving bytes where both share a store, and then lists and
	// compares every digest there. Sources are not copied.
	Copy(ctx context.Context, from, to string, r Release, evidence []Digest) error
}

// Parts is how a release is put together and taken apart: what build writes and
// verify and pull read.
type Parts interface {
	// PutPart stores a part in the repository and gives its manifest. The same part gives
	// the same digest. What is there already is not read again.
	PutPart(ctx context.Context, repository string, p Part) (PartRef, error)
	// Assemble stores the index of a release or of sources over parts that are there.
	Assemble(ctx context.Context, repository string, a Assembly) (Digest, error)
	// Sources reads a sources index. Errors: CodeNotFound; CodeInvalid when it is none;
	// CodeTrust when index and manifests differ; CodeDigest.
	Sources(ctx context.Context, repository string, d Digest) (Sources, error)
	// Fetch writes the files of a part into dir, which exists, checking each digest while
	// writing and syncing nothing. An empty dir fetches only the description.
	Fetch(ctx context.Context, repository string, part Digest, dir string) (FetchedPart, error)
}

// Lender is [Parts] that can give files which it goes on using.
type Lender interface {
	// Lend is Fetch for who only reads: large files in dir may be those of the store
	// itself, under another name.
	Lend(ctx context.Context, repository string, part Digest, dir string) (FetchedPart, error)
}

// Settled is a file that nobody writes to any more. [Blobs] on the same file system may
// take it for their own, under another name, rather than copy it.
type Settled struct{ *os.File }

// LinkFrom is from how many bytes on files are linked rather than copied: for less, it is
// not worth that what happens to one happens to the other.
const LinkFrom = 1 << 20

// Part is a manifest to be made.
type Part struct {
	Role   PartRole
	Files  []PartFile
	Engine Engine // engine and reference: target, toolchain and what it was made from
	Model  string // engine and reference: name in the ModelPack config
	Format string // engine and reference: "onnx"
	Set    *Set   // cases, golden and calibration
}

// PartFile is a file of a part to be made. Open is called only if its blob is not
// there yet; who called it closes.
type PartFile struct {
	File
	Open func() (io.ReadCloser, error)
}

// PartRef is a part that is stored.
type PartRef struct {
	Role   PartRole
	Digest Digest
	Size   int64 // bytes of the manifest
}

// Assembly is an index to be made. A release has Version; sources have none.
type Assembly struct {
	Model    string
	Version  string
	Revision int
	Sources  Digest
	Plan     Digest
	Parts    []PartRef
	Tags     []string // set at once; for the first environment's repositories
}

// Sources is what a release was made from and is judged by.
type Sources struct {
	Digest Digest
	Model  string
	Parts  map[PartRole]PartRef // one of each role
}

// FetchedPart describes a part that was read.
type FetchedPart struct {
	Role     PartRole
	Manifest []byte // exact bytes
	Files    []File
	Engine   Engine // engine and reference
	Set      *Set   // cases, golden and calibration
}

// VerifyEvidence checks the signature of a bundle and says what its signer may say
// about the resource. The Claim has no Bundle and Subject yet. Errors: CodeTrust when
// nobody who is trusted for anything signed it.
type VerifyEvidence func(ctx context.Context, bundle []byte, resource string) (Claim, error)

// SignEvidence signs a statement in a role. It gives a sigstore bundle. Errors:
// CodeUnavailable when this process has no key for the role.
type SignEvidence func(ctx context.Context, role Role, statement []byte) ([]byte, error)

// Clock tells the time of this process.
type Clock func() time.Time

// CatalogClock tells the time of the catalog. Ages, leases and deadlines that several
// processes compare are measured by this clock, never by their own.
type CatalogClock interface {
	CatalogTime(ctx context.Context) (time.Time, error)
}
