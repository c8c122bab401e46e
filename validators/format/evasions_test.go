package format_test

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"testing"
)

// evasions are files that Python reads in another way than Go does.
func evasions(t testing.TB) []hostile {
	t.Helper()
	return folders(t)
}

// folders are entries of archives that say they are folders, which Python reads like any other.
func folders(t testing.TB) []hostile {
	const unix, fat, ntfs, mac = 3 << 8, 0, 10 << 8, 19 << 8
	return []hostile{
		{"pickle in a folder of Unix", zipEntry(t, zip.FileHeader{Name: "weights", CreatorVersion: unix, ExternalAttrs: 0o040755 << 16}, call), `entry "weights"`},
		{"pickle in a folder of a Mac", zipEntry(t, zip.FileHeader{Name: "weights", CreatorVersion: mac, ExternalAttrs: 0o040755 << 16}, call), `entry "weights"`},
		{"pickle in a folder of FAT", zipEntry(t, zip.FileHeader{Name: "weights", CreatorVersion: fat, ExternalAttrs: 0x10}, call), `entry "weights"`},
		{"pickle in a folder of NTFS", zipEntry(t, zip.FileHeader{Name: "weights", CreatorVersion: ntfs, ExternalAttrs: 0x10}, call), `entry "weights"`},
		{"folder without a slash", zipEntry(t, zip.FileHeader{Name: "weights", CreatorVersion: unix, ExternalAttrs: 0o040755 << 16}, "text"), `entry "weights" is a folder with bytes of its own`},
		{"folder with bytes", renamed(stored(t, "weights_", call), "weights_", "weights/"), `entry "weights/" is a folder with bytes of its own`},
		{"folder with compressed bytes", renamed(zipped(t, "weights_", call), "weights_", "weights/"), `entry "weights/" is a folder with bytes of its own`},
		{"folder that says it has no bytes", sized(renamed(zipped(t, "weights_", call), "weights_", "weights/"), 0), `entry "weights/" is a folder with bytes of its own`},
	}
}

// zipEntry makes an archive of one entry.
func zipEntry(t testing.TB, h zip.FileHeader, body string) []byte {
	t.Helper()
	var buf bytes.Buffer
	w := zip.NewWriter(&buf)
	h.CompressedSize64, h.UncompressedSize64, h.CRC32 = uint64(len(body)), uint64(len(body)), crc32.ChecksumIEEE([]byte(body))
	f, err := w.CreateRaw(&h)
	if err == nil {
		_, err = f.Write([]byte(body))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

// renamed gives an entry another name of the same length, which Go's writer would not write.
func renamed(archive []byte, from, to string) []byte {
	return bytes.ReplaceAll(archive, []byte(from), []byte(to))
}

// folderOfJava is what the library of Java writes for a folder: a compressed stream of no bytes.
func folderOfJava(t testing.TB) []byte {
	t.Helper()
	archive := method(renamed(zipEntry(t, zip.FileHeader{Name: "a_"}, "\x03\x00"), "a_", "a/"), zip.Deflate)
	binary.LittleEndian.PutUint32(archive[central(archive)+16:], 0)
	return sized(archive, 0)
}
