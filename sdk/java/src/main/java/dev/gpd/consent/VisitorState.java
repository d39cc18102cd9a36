package dev.gpd.consent;

import java.util.List;

/**
 * A visitor's choices, read from the cookie {@code gpd_consent}.
 *
 * @param purposes the purposes that were granted
 * @param seq the newest entry of the log about this person
 * @param at the ISO time when gpd signed it
 */
public record VisitorState(List<String> purposes, long seq, String at) {}
