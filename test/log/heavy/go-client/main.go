// Reads a tenant's log with the Go checksum database's library (golang.org/x/mod/sumdb/tlog) and judges its newest
// checkpoint by a policy that torchwood parses. Arguments: base URL, API key, verifier key, file of the policy.
package main

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"strings"

	"filippo.io/torchwood"
	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

type tiles struct{ base, key string }

func (t tiles) get(path string) ([]byte, error) {
	request, err := http.NewRequest("GET", t.base+"/"+path, nil)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+t.key)
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", path, response.Status)
	}
	return io.ReadAll(response.Body)
}

func (t tiles) Height() int                        { return torchwood.TileHeight }
func (t tiles) SaveTiles(_ []tlog.Tile, _ [][]byte) {}

// The library checks each tile against the tree. C2SP tlog-tiles has no height in the path of a tile.
func (t tiles) ReadTiles(wanted []tlog.Tile) ([][]byte, error) {
	var read [][]byte
	for _, tile := range wanted {
		data, err := t.get(torchwood.TilePath(tile))
		if err != nil {
			return nil, err
		}
		read = append(read, data)
	}
	return read, nil
}

// A bundle of entries: each has its length in two bytes before it.
func (t tiles) entries(tree tlog.Tree) ([][]byte, error) {
	var all [][]byte
	for first := int64(0); first < tree.N; first += torchwood.TileWidth {
		width := min(tree.N-first, torchwood.TileWidth)
		tile := tlog.Tile{H: torchwood.TileHeight, L: -1, N: first / torchwood.TileWidth, W: int(width)}
		bundle, err := t.get(torchwood.TilePath(tile))
		if err != nil {
			return nil, err
		}
		for len(bundle) > 1 {
			end := 2 + int(bundle[0])<<8 + int(bundle[1])
			if end > len(bundle) {
				return nil, fmt.Errorf("a bundle is cut off")
			}
			all = append(all, bundle[2:end])
			bundle = bundle[end:]
		}
	}
	return all, nil
}

func must[T any](value T, err error) T {
	if err != nil {
		log.Fatal(err)
	}
	return value
}

func main() {
	log.SetFlags(0)
	source := tiles{base: os.Args[1], key: os.Args[2]}
	verifier := must(note.NewVerifier(os.Args[3]))
	signed := must(source.get("checkpoint"))
	opened := must(note.Open(signed, note.VerifierList(verifier)))
	checkpoint := must(torchwood.ParseCheckpoint(opened.Text))
	tree := checkpoint.Tree
	hashes := tlog.TileHashReader(tree, source)

	entries := must(source.entries(tree))
	if int64(len(entries)) != tree.N {
		log.Fatalf("%d entries of %d", len(entries), tree.N)
	}
	for i, entry := range entries {
		proof := must(tlog.ProveRecord(tree.N, int64(i), hashes))
		if err := tlog.CheckRecord(proof, tree.N, tree.Hash, int64(i), tlog.RecordHash(entry)); err != nil {
			log.Fatalf("entry %d: %v", i, err)
		}
	}
	for size := int64(1); size < tree.N; size++ {
		older := must(tlog.TreeHash(size, hashes))
		proof := must(tlog.ProveTree(tree.N, size, hashes))
		if err := tlog.CheckTree(proof, tree.N, tree.Hash, size, older); err != nil {
			log.Fatalf("size %d: %v", size, err)
		}
	}

	policy := must(torchwood.ParsePolicy(must(os.ReadFile(os.Args[4]))))
	_, _, err := torchwood.VerifyCheckpoint(signed, policy)
	satisfied := "satisfied"
	if err != nil {
		satisfied = strings.ReplaceAll(err.Error(), "\n", " ")
	}
	fmt.Printf("entries %d\npolicy %s\n", tree.N, satisfied)
}
