/** The tests use the umask of gpd: nobody else can read the files that they write. */
process.umask(0o077);
