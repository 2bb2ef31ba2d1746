# Writes HEADER with the SHA-256 of ARCHIVE: which compiled policies a result came from.
file(SHA256 "${ARCHIVE}" hash)
file(WRITE "${HEADER}" "#define FL_ARCHIVE_HASH \"${hash}\"\n")
