import type { ServiceProfile } from '../../inference/simulated/profiles.ts';

/** The profile of a device that does so many times the work in a time. */
export function fasterProfile(profile: ServiceProfile, speed: number): ServiceProfile {
  return {
    ...profile,
    launchMs: profile.launchMs / speed,
    requestMs: profile.requestMs / speed,
    candidateMs: profile.candidateMs / speed,
  };
}
