package registry

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding"
	"fmt"
	"hash"
	"io"
	"iter"
	"time"
)

// UploadOwner is whom an upload belongs to. To anybody else it is not there.
type UploadOwner struct {
	Repository string
	Principal  string // empty: nobody is asked who he is
}

// Uploads is blobs that arrive in pieces. An upload outlives the process that began it,
// and another one that shares the storage can go on with it.
type Uploads interface {
	Cancellation
	// Begin starts an upload and gives its identifier.
	Begin(ctx context.Context, owner UploadOwner) (id string, err error)
	// Offset gives the number of bytes that arrived. Errors: CodeNotFound.
	Offset(ctx context.Context, owner UploadOwner, id string) (int64, error)
	// Append writes r behind the bytes that arrived, which must be offset, and gives
	// their new number, also when r fails half-way: what came counts. Errors:
	// CodeNotFound; CodeConflict for another offset, while another Append is at work, and
	// when another process went on with the upload meanwhile.
	Append(ctx context.Context, owner UploadOwner, id string, offset int64, r io.Reader) (int64, error)
	// Finish makes the upload the blob d, durably, and ends it. Errors: CodeNotFound;
	// CodeConflict as for Append; CodeDigest when the bytes are not d's, and then the
	// upload is gone.
	Finish(ctx context.Context, owner UploadOwner, id string, d Digest) (size int64, err error)
}

// Cancellation is how uploads end that nobody finishes.
type Cancellation interface {
	// Cancel ends an upload; what arrived is gone. Errors: CodeNotFound; CodeConflict while
	// an Append is at work.
	Cancel(ctx context.Context, owner UploadOwner, id string) error
}

// UploadCounts counts uploads that are under way.
type UploadCounts interface {
	// CountUploads counts those of a principal, in all repositories, that were touched within
	// the last while, by the clock of the catalog.
	CountUploads(ctx context.Context, principal string, within time.Duration) (int, error)
}

// UploadState is how far an upload has come. It is the truth about it: bytes in the
// storage that it does not count did not arrive.
type UploadState struct {
	ID    string
	Owner UploadOwner
	// Offset is the number of bytes that arrived.
	Offset int64
	// Hash is the state of the sha256 of those bytes; empty at the beginning.
	Hash []byte
	// Place is the storage's own notes on where the bytes are.
	Place string
	// Version is counted by [UploadStates]: 1 when the upload is made, and one more each
	// time that it is swapped.
	Version int64
	// Touched is when the state was last written, by the clock of the catalog, in UTC to the
	// microsecond. [UploadStates] sets it.
	Touched time.Time
}

// UploadStates keeps the states of uploads where every process sees them.
// Implementations are safe for concurrent use, also by several processes.
//
// States need not survive a power failure. One that is lost is an upload that has to be
// begun again, and one that comes back as it was before goes on from there.
type UploadStates interface {
	// CreateUpload records the state of a new upload. Errors: CodeConflict when its
	// identifier is taken.
	CreateUpload(ctx context.Context, s UploadState) error
	// Upload gives the state of an upload. Errors: CodeNotFound, also for anybody but its
	// owner and for what is no identifier.
	Upload(ctx context.Context, owner UploadOwner, id string) (UploadState, error)
	// SwapUpload replaces Offset, Hash and Place of the upload s.ID if its version is still
	// s.Version, which counts up by one. Errors: CodeNotFound;
	// CodeConflict when somebody else swapped it.
	SwapUpload(ctx context.Context, s UploadState) error
	// EndUpload forgets an upload if its version is still that one. Errors: as SwapUpload.
	EndUpload(ctx context.Context, id string, version int64) error
	// StaleUploads lists the uploads that were last touched longer than idle ago, by the clock
	// of the catalog, oldest first. An idle of 0 means all uploads.
	StaleUploads(ctx context.Context, idle time.Duration) iter.Seq2[UploadState, error]
}

// NewUpload is the state of an upload that begins. Its identifier is a random UUID,
// version 4 of RFC 9562.
func NewUpload(owner UploadOwner) UploadState {
	var b [16]byte
	_, _ = rand.Read(b[:]) // never fails
	b[6], b[8] = b[6]&0x0f|0x40, b[8]&0x3f|0x80
	id := fmt.Sprintf("%x-%x-%x-%x-%x", b[:4], b[4:6], b[6:8], b[8:10], b[10:])
	return UploadState{ID: id, Owner: owner, Version: 1}
}

// Sum is the sha256 of the bytes that arrived, ready for more of them. Errors:
// CodeInternal when Hash is not the state of one.
func (s UploadState) Sum() (hash.Hash, error) {
	sum := sha256.New()
	if len(s.Hash) == 0 && s.Offset == 0 {
		return sum, nil
	}
	state, ok := sum.(encoding.BinaryUnmarshaler)
	if !ok {
		return nil, Errorf(CodeInternal, "upload %s: this program's sha256 cannot be taken up again", s.ID)
	}
	if err := state.UnmarshalBinary(s.Hash); err != nil {
		return nil, Errorf(CodeInternal, "upload %s: the state of its hash is damaged: %w", s.ID, err)
	}
	return sum, nil
}

// Advanced is the state when n bytes have arrived, whose sha256 is sum.
func (s UploadState) Advanced(n int64, sum hash.Hash) (UploadState, error) {
	state, ok := sum.(encoding.BinaryMarshaler)
	if !ok {
		return UploadState{}, Errorf(CodeInternal, "upload %s: this program's sha256 cannot be taken up again", s.ID)
	}
	raw, err := state.MarshalBinary()
	if err != nil {
		return UploadState{}, Errorf(CodeInternal, "upload %s: keep the state of its hash: %w", s.ID, err)
	}
	s.Offset, s.Hash = n, raw
	return s, nil
}
