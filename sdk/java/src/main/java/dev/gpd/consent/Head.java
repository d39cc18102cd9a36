package dev.gpd.consent;

import java.net.http.HttpHeaders;

/** Of an answer. */
record Head(int status, HttpHeaders headers) {}
