/** As `gpd` itself: what it writes is read by nobody else. */
process.umask(0o077);
